package v1_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("deep inside: %w", v1.Errorf(v1.PathNotFound, "Path not found: %s", "a"))
	require.True(t, errors.Is(err, &v1.Error{Code: v1.PathNotFound}))
	require.False(t, errors.Is(err, &v1.Error{Code: v1.FileExists}))
	require.False(t, errors.Is(v1.ErrSizeLimit, v1.ErrDiskFull))
	another := &v1.Error{Code: v1.VolumeNotFound, Message: "another text"}
	require.False(t, errors.Is(another, v1.ErrVolumeNotFound))
}

package intent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// TestStartPatterns: a pattern is matched against all that a container prints,
// so it may not be one that takes a second for a line.
func TestStartPatterns(t *testing.T) {
	for pattern, fault := range map[string]string{
		"": "", `\)! For help, type "help"`: "", `(?i)^\[.{1,200}/INFO\]: \p{L}{1,50} done`: "",
		"(":                                 "start_pattern: must be an RE2 expression: missing closing ): `(`",
		`(?=x)`:                             "start_pattern: must be an RE2 expression: invalid or unsupported Perl syntax: `(?=`",
		strings.Repeat("x", 4097):           "start_pattern: must be at most 4096 bytes",
		strings.Repeat("(a?){1000}", 40):    "start_pattern: must be at most 10000 steps: repeat less in it",
		strings.Repeat("((a?){30}){30}", 9): "start_pattern: must be at most 10000 steps: repeat less in it",
	} {
		var f v1.FieldErrors
		intent.CheckContainer(&f, intent.Policy{}, "mc", &v1.ContainerSpec{Image: "busybox:1", VolumeID: "x", StartPattern: pattern})
		if fault == "" {
			require.NoError(t, f.Err(), pattern)
		} else {
			require.EqualError(t, f.Err(), fault, pattern)
		}
	}
}

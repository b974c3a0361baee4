package intent_test

import (
	"math"
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

// TestLimitsOfTheHost requires that a request for more than the host has is refused, and a sum
// of memory and swap that no number holds.
func TestLimitsOfTheHost(t *testing.T) {
	faults := func(cpus int, l v1.Limits) string {
		var f v1.FieldErrors
		spec := v1.ContainerSpec{Image: "i", VolumeID: "v", Limits: l}
		intent.CheckContainer(&f, intent.Policy{CPUs: cpus}, "mc", &spec)
		if err := f.Err(); err != nil {
			return err.Error()
		}
		return ""
	}
	require.Equal(t, "limits.cpu: must be at most 2, the number of the host's processors", faults(2, v1.Limits{CPU: 2.5}))
	require.Empty(t, faults(2, v1.Limits{CPU: 2}))
	require.Empty(t, faults(0, v1.Limits{CPU: 400}))
	require.Equal(t, "limits.swap: must be at most 9223372036854775807 together with limits.memory", faults(0, v1.Limits{Memory: 8 << 20, Swap: math.MaxInt64 - 1}))
}

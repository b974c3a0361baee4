package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func TestLinesOfALog(t *testing.T) {
	const first, second = "2026-11-26T12:00:00.000000001Z", "2026-11-26T12:00:00.000000002Z"
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, text)
		return t
	}
	long := strings.Repeat("x", maxPart)
	for _, tty := range []bool{false, true} {
		var got []runtime.Line
		log := first + " one\r\n" + second + " " + long + "y\n" + second + " \n" + second + " half"
		require.NoError(t, readLines(iotest.OneByteReader(strings.NewReader(log)), tty, func(l runtime.Line) error {
			got = append(got, l)
			return nil
		}))
		one := "one\r"
		if tty {
			one = "one"
		}
		part := maxPart - len(second) - 1 // the buffer has the time too
		require.Equal(t, []runtime.Line{
			{Time: at(first), Data: []byte(one)},
			{Time: at(second), Data: []byte(long[:part]), Partial: true},
			{Time: at(second), Data: []byte(long[part:] + "y")},
			{Time: at(second), Data: []byte{}},
			{Time: at(second), Data: []byte("half"), Partial: true},
		}, got)
	}
}

func TestErrorsOfALog(t *testing.T) {
	var broken errBroken
	each := func(runtime.Line) error { return nil }
	require.ErrorAs(t, readLines(strings.NewReader("no time\n"), false, each), &broken)
	cut := errors.New("cut")
	require.ErrorAs(t, readLines(iotest.ErrReader(cut), false, each), &broken)
	err := readLines(strings.NewReader("2026-11-26T12:00:00Z one\n"), false, func(runtime.Line) error { return cut })
	require.Equal(t, cut, err, "the error of the function that takes the lines is returned as it is")
}

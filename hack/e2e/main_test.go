package e2e_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/browsertest"
)

// TestMain runs more tests in parallel than there are cores, because they mostly
// wait for the engine.
func TestMain(m *testing.M) {
	browsertest.Main()
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6")
	}
	m.Run()
}

// rounds returns how often a test repeats: short times, or long times in the long form.
func rounds(short, long int) int {
	if os.Getenv("BERTH_LONG") != "" {
		return long
	}
	return short
}

// dice returns a test's random numbers. It logs the seed, which BERTH_E2E_SEED sets.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BERTH_E2E_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = given
	}
	t.Logf("BERTH_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// pause sleeps. Tests use it where the moment of a fault is itself the test's
// input, so that there is no condition to wait for.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// wait is the time limit for any condition, for busy machines.
const wait = 3 * time.Minute

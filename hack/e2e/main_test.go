package e2e_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets more tests wait at once than there are cores: most of their
// time is the engine's.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6")
	}
	m.Run()
}

// rounds is how often something is tried: a few times, or often in the long form.
func rounds(short, long int) int {
	if os.Getenv("BERTH_E2E_LONG") != "" {
		return long
	}
	return short
}

// dice are a test's random numbers. Their seed is printed, and can be given.
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

// pause lets the daemon go on for a random time: the moment of a fault is what
// is being tried, and no condition stands for it.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// wait is how long anything may take on a busy machine.
const wait = 60 * time.Second

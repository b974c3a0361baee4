package ui_test

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"berth/hack/test/browsertest"
)

// TestMain runs more tests in parallel than there are cores, because they mostly wait for the
// engine and the browser, which it ends after all of them.
func TestMain(m *testing.M) {
	browsertest.Main()
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "4")
	}
	code := m.Run()
	endChromium()
	os.Exit(code)
}

// chromium starts the browser in which each test has a tab of its own. endChromium ends
// it, if it was started.
var chromium, endChromium = func() (func() (context.Context, error), func()) {
	end := func() {}
	begin := sync.OnceValues(func() (context.Context, error) {
		dir, err := os.MkdirTemp("", "berth-ui")
		if err != nil {
			return nil, err
		}
		options, err := browsertest.Options("../chromium.sh", dir)
		if err != nil {
			return nil, err
		}
		ctx, stopProcess := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stop := chromedp.NewContext(ctx)
		end = func() {
			stop()
			stopProcess()
			_ = os.RemoveAll(dir)
		}
		return ctx, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
	})
	return begin, func() { end() }
}()

package ui_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestTransfers begins a transfer to a node that does not answer, and cancels it, on a narrow screen.
func TestTransfers(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Create(t, "mc", berthtest.Spec{"startup_command": "sleep 1000"})
	b.State(t, "mc", "ready")
	p := openTab(t)
	p.login(b, b.Token)
	p.do(chromedp.EmulateViewport(390, 844))
	p.goTo("#/containers/mc/transfers")
	p.shows(".empty", "The container was not moved in the last 7 days.")
	p.click("button", "Move to another node")
	p.fill("Address of the other node", "http://"+b.Addr)
	p.fill("Token of the other node", berthtest.NewToken())
	p.choose("Ports", "random")
	p.choose("Completed backups", "yes")
	p.click("dialog button", "Move")
	p.shows("#field-url-error", "this is the node itself")
	p.until("no scrolling sideways", "document.documentElement.scrollWidth <= 390")
	p.axe("a transfer")
	p.fill("Address of the other node", "http://192.0.2.1:1")
	p.answer("Move")
	p.shows("td", "192.0.2.1")
	p.shows(".pill.busy", "pending")
	p.axe("transfers")
	p.shot("transfers-390")
	list, err := b.API.Transfers().List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, v1.TransferPending, list[0].State)
	p.click("button", "Cancel the transfer to http://192.0.2.1:1")
	p.shows(".pill.idle", "cancelled")
	p.clean(b)
}

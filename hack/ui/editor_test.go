package ui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestTwoEditOneFile: the second one to save is shown what the first one has changed, and nothing is lost.
func TestTwoEditOneFile(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "mc", berthtest.Spec{"install_script": "printf 'motd=hello\\npvp=true\\nport=1\\n' > server.properties"})
	file := filepath.Join(b.Data, "volumes", b.Container(t, "mc").VolumeID, "server.properties")
	content := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	change := func(text string) { // as another client does
		at := "/volumes/" + b.Container(t, "mc").VolumeID + "/files"
		b.Post(t, at, map[string]string{"path": "server.properties", "content": text})
	}
	p := openTab(t)
	p.login(b, b.Token)
	for _, s := range screens {
		p.do(chromedp.EmulateViewport(s.width, s.height, s.options...))
		change("motd=hello\npvp=true\nport=1\n")
		p.goTo("#/containers/mc/console")
		p.goTo("#/containers/mc/files")
		p.click("button", "server.properties")
		p.until("the editor", "document.querySelector('.editor textarea')?.value.startsWith('motd=hello')")
		change("motd=hello\npvp=false\nport=1\n")
		p.fill("Content of server.properties", "motd=mine")
		p.click("button", "Save")
		p.shows(".diff .old", "pvp=true")
		p.shows(".diff .new", "pvp=false")
		require.Equal(t, "motd=hello\npvp=false\nport=1\n", content(), "the other change is not lost")
		p.until("the comparison is no wider than the screen", "[...document.querySelectorAll('dialog')].every((e) => e.getBoundingClientRect().right <= innerWidth)")
		p.axe("conflict-" + s.name)
		p.shot("conflict-" + s.name)

		p.click("button", "Keep editing")
		p.until("my text", "document.querySelector('.editor textarea').value === 'motd=mine'")
		p.click("button", "Save")
		p.shows(".diff .new", "pvp=false")
		p.click("button", "Discard mine")
		p.until("their text", "document.querySelector('.editor textarea').value.includes('pvp=false')")

		p.until("no earlier message", "!document.querySelector('.message')")
		p.fill("Content of server.properties", "motd=mine")
		p.click("button", "Save")
		p.shows(".message", "Saved")
		require.Equal(t, "motd=mine", content(), "their version was opened: no conflict")
		require.NoError(t, os.Remove(file))
		p.fill("Content of server.properties", "motd=again")
		p.click("button", "Save")
		p.shows("dialog p", "The file was deleted.")
		p.click("button", "Replace with mine")
		p.until("no comparison", "document.querySelectorAll('dialog[open]').length === 1")
		require.Equal(t, "motd=again", content())
		p.answer("Close")
	}
	p.clean(b)
}

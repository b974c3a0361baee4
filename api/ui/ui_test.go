package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// maxSize bounds the compressed bytes of the page.
const maxSize = 120_000

func TestSize(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	require.Less(t, p.Size(), maxSize)
	t.Logf("%d files, %d bytes compressed", len(p.files), p.Size())
}

func TestScriptsAreServedWithoutComments(t *testing.T) {
	p, err := load(fstest.MapFS{
		"assets/index.html":    {},
		"assets/boot.js":       {Data: []byte("// Why.\nlet a = 1; // one\n  // More.\n\nconst u = 'http://x';\n")},
		"assets/vendor/lib.js": {Data: []byte("// Licence: MIT\n")},
	})
	require.NoError(t, err)
	require.Equal(t, "\nlet a = 1; // one\n\n\nconst u = 'http://x';\n", string(p.files["boot.js"].Plain))
	require.Equal(t, "// Licence: MIT\n", string(p.files["vendor/lib.js"].Plain))
}

// TestNothingInline: the policy would refuse it, and the page would be broken.
func TestNothingInline(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	document := string(p.Index().Plain)
	require.NotRegexp(t, `<style|style=|<script[^>]*>[^<]|\son[a-z]+=|https?://`, document)
	for name, file := range p.files {
		if !strings.HasPrefix(name, "vendor/") {
			require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function`, string(file.Plain), name)
		}
	}
}

// TestImportsExist: an import that is not there breaks the whole page.
func TestImportsExist(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	anyImport := regexp.MustCompile(`(?:from\s*|import\()['"](\.[^'"]+)['"]`)
	found := 0
	for name, file := range p.files {
		for _, m := range anyImport.FindAllStringSubmatch(string(file.Plain), -1) {
			target := resolve(name, m[1])
			require.Contains(t, p.files, target, "%s imports %s", name, m[1])
			found++
		}
	}
	require.Greater(t, found, 50)
}

// TestFirstModules: the document names all modules, those that send requests first.
func TestFirstModules(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`modulepreload" href="[^/]+/([^"]+)"`).FindAllStringSubmatch(string(p.Index().Plain), -1) {
		names = append(names, m[1])
	}
	require.Equal(t, "boot.js", names[0])
	require.Less(t, slices.Index(names, "core/api.js"), slices.Index(names, "main.js"))
	require.Contains(t, names, "views/containers.js")
	require.Contains(t, names, "vendor/preact.js", "an import of a library")
	for name := range p.files {
		require.True(t, path.Ext(name) != ".js" || slices.Contains(names, name), "%s is loaded by nothing", name)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names), "each once")
}

// resolve returns the path of an import in a module.
func resolve(module, to string) string {
	parts := strings.Split(module, "/")
	parts = parts[:len(parts)-1]
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case ".":
		case "..":
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// TestVendor compares the libraries with their checksums.
func TestVendor(t *testing.T) {
	list, err := Libraries()
	require.NoError(t, err)
	entries, err := assets.ReadDir("assets/vendor")
	require.NoError(t, err)
	known := 1 // vendor.json
	for _, one := range list {
		require.NotEmpty(t, one.Version)
		require.NotEmpty(t, one.License)
		require.Contains(t, one.Integrity, "sha512-")
		_, err := assets.ReadFile("assets/vendor/" + one.Name + ".LICENSE")
		require.NoError(t, err)
		known++
		for name, want := range one.Files {
			content, err := assets.ReadFile("assets/vendor/" + name)
			require.NoError(t, err)
			sum := sha256.Sum256(content)
			require.Equal(t, want, hex.EncodeToString(sum[:]), name)
			known++
		}
	}
	require.Len(t, entries, known)
}

func TestVersion(t *testing.T) {
	files := func(text string) fstest.MapFS {
		return fstest.MapFS{
			"assets/index.html": {Data: []byte(`<a href="{{.Version}}/a.js">{{range .Modules}}{{.}} {{end}}`)},
			"assets/main.js":    {Data: []byte(`import { a } from './a.js'; import{b}from"./b.js"; import { a } from './a.js'`)},
			"assets/b.js":       {Data: []byte("import { none } from './none.js'")},
			"assets/a.js":       {Data: []byte(text)},
			"assets/a.LICENSE":  {Data: []byte("text")},
		}
	}
	one, err := load(files("1"))
	require.NoError(t, err)
	other, err := load(files("2"))
	require.NoError(t, err)
	require.NotEqual(t, one.Version(), other.Version())
	require.Contains(t, string(one.Index().Plain), one.Version()+"/a.js\">main.js a.js b.js ")
	_, found := one.File(one.Version(), "a.js")
	require.True(t, found)
	for _, name := range []string{"index.html", "a.LICENSE", "", "none"} {
		_, found = one.File(one.Version(), name)
		require.False(t, found, name)
	}
	_, found = one.File(other.Version(), "a.js")
	require.False(t, found)
}

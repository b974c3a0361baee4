package configfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// eggCase is an edit as an egg has it, and the content that is right.
type eggCase struct {
	ID, Name, Parser string
	Before           *string // nil: the file is missing
	Edits            []struct {
		Key   string
		Value any
		If    string
	}
	Create   *bool
	Expected struct {
		Data          any
		Accept        [][2]any // path and value that are right too
		Refused       bool
		RefusalIsFine bool `json:"refusal_is_fine"`
		OnlyEdited    bool `json:"only_edited"`
	}
}

// TestEggEdits makes the edits of 361 eggs, and others that show what the parsers of eggs do.
func TestEggEdits(t *testing.T) {
	file, err := os.Open("testdata/edits.jsonl")
	require.NoError(t, err)
	defer file.Close()
	count := 0
	for d := json.NewDecoder(bufio.NewReader(file)); ; count++ {
		var c eggCase
		if err := d.Decode(&c); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
	}
	require.Equal(t, 429, count)
}

func (c eggCase) run(t *testing.T) {
	if c.Create != nil {
		return // package volume does not create the file
	}
	formats := map[string]string{"file": "text", "yml": "yaml"}
	format := c.Parser
	if other, is := formats[format]; is {
		format = other
	}
	before := ""
	if c.Before != nil {
		before = *c.Before
	}
	after, err := Apply(format, []byte(before), c.change(format))
	if c.Expected.Refused || err != nil && c.Expected.RefusalIsFine {
		require.Error(t, err, "%s: %q", c.Name, after)
		return
	}
	require.NoError(t, err, c.Name)
	got, want := readEgg(t, format, after), c.Expected.Data
	if format == "xml" {
		sortChildren(want)
	}
	wrong := c.compare("", got, want)
	if c.Expected.OnlyEdited {
		wrong = slices.DeleteFunc(wrong, func(at string) bool {
			return !slices.ContainsFunc(c.change(format).Edits, func(e Edit) bool { return strings.HasPrefix(at, "."+strings.ReplaceAll(e.Key, `\.`, ".")) })
		})
	}
	require.Empty(t, wrong, "%s: %q: %v, want %v", c.Name, after, got, want)
}

// change returns the edits as an importer of eggs translates them.
func (c eggCase) change(format string) (change Change) {
	for _, e := range c.Edits {
		value := ""
		if e.Value != nil {
			value = fmt.Sprint(e.Value)
		}
		value = regexp.MustCompile(`\{\{ ?config\.docker\.(network\.)?interface ?\}\}`).ReplaceAllString(value, "172.18.0.1")
		one := Edit{e.Key, value, e.If}
		if _, err := regexp.Compile(strings.TrimPrefix(e.If, regexCondition)); err != nil {
			continue // the API refuses it
		}
		if format == "properties" && strings.HasPrefix(e.If, regexCondition) {
			continue // the panels take it for a text
		}
		switch format {
		case "text":
			change.Lines = OnlyReplace
			one.If = ""
		case "ini":
			section, name := "", e.Key
			if at := regexp.MustCompile(`^((?:\[[^\]]*\]|[^.\[])*)\.(.*)$`).FindStringSubmatch(e.Key); at != nil {
				section, name = at[1], at[2]
			}
			clean := strings.NewReplacer("[", "", "]", "", ".", `\.`)
			one.Key, one.If = clean.Replace(section)+"."+clean.Replace(name), ""
		case "xml":
			one.Key, one.If = "/"+regexp.MustCompile(`\.(\[[^\]]*\])?`).ReplaceAllString(e.Key, "/$1"), ""
			if m := regexp.MustCompile(`^\[(\w+)='(.*)'\]$`).FindStringSubmatch(one.Value); m != nil {
				one.Key, one.Value = one.Key+"/@"+m[1], m[2]
			}
		case "yaml", "json":
			one.Key = strings.ReplaceAll(e.Key, "~1", `\.`)
		}
		change.Edits = append(change.Edits, one)
	}
	return change
}

// compare returns the paths at which two documents differ.
func (c eggCase) compare(at string, got, want any) (wrong []string) {
	for _, a := range c.Expected.Accept {
		if fmt.Sprint(".", a[0]) == at && fmt.Sprintf("%T%v", a[1], a[1]) == fmt.Sprintf("%T%v", got, got) {
			return nil
		}
	}
	switch want := want.(type) {
	case map[string]any:
		m, is := got.(map[string]any)
		if !is {
			return []string{at}
		}
		for name := range m {
			if _, known := want[name]; !known {
				wrong = append(wrong, at+"."+name)
			}
		}
		for name := range want {
			one, exists := m[name]
			if !exists {
				one = "missing"
			}
			if list := c.compare(at+"."+name, one, want[name]); at != "." || name != "" {
				wrong = append(wrong, list...)
			}
		}
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			return []string{at}
		}
		for i := range want {
			wrong = append(wrong, c.compare(fmt.Sprint(at, ".", i), list[i], want[i])...)
		}
	default:
		if fmt.Sprintf("%T%v", want, want) != fmt.Sprintf("%T%v", got, got) {
			return []string{at}
		}
	}
	return wrong
}

// readEgg reads a file, without the readers of this package but that of properties.
func readEgg(t *testing.T, format string, content []byte) (got any) {
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	switch format {
	case "json":
		require.NoError(t, json.Unmarshal(content, &got), "%s", content)
	case "yaml":
		require.NoError(t, yaml.NewDecoder(bytes.NewReader(content)).Decode(&got), "%s", content)
		got = asJSON(t, got)
	case "properties":
		last, _, err := readProperties(content)
		require.NoError(t, err)
		values := map[string]any{}
		for key, one := range last {
			values[key] = one.value
		}
		got = values
	case "text":
		lines := []any{}
		for _, l := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n"), "\n") {
			lines = append(lines, l)
		}
		got = lines
	case "ini":
		section, values := map[string]any{}, map[string]any{}
		values[""] = section
		for _, l := range strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n") {
			if l = strings.TrimSpace(l); l == "" || l[0] == ';' || l[0] == '#' {
				continue
			}
			if l[0] == '[' {
				name := l[1:strings.LastIndexByte(l, ']')]
				if values[name] == nil {
					values[name] = map[string]any{}
				}
				section = values[name].(map[string]any)
				continue
			}
			at := strings.IndexAny(l, "=:")
			if at < 0 {
				section[l] = nil
				continue
			}
			section[strings.TrimSpace(l[:at])] = strings.TrimSpace(l[at+1:])
		}
		if len(values[""].(map[string]any)) == 0 {
			delete(values, "")
		}
		got = values
	case "xml":
		var root xmlElement
		require.NoError(t, xml.Unmarshal(content, &root), "%s", content)
		got = root.plain()
	}
	return got
}

// asJSON returns a document of yaml as json has it.
func asJSON(t *testing.T, v any) (same any) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = asJSON(t, child)
		}
	case map[any]any:
		m := map[string]any{}
		for name, child := range v {
			m[fmt.Sprint(name)] = asJSON(t, child)
		}
		return m
	case []any:
		for i := range v {
			v[i] = asJSON(t, v[i])
		}
	case time.Time:
		return v.Format(time.DateOnly)
	case int, int64, uint64, float64:
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &same))
		return same
	}
	return v
}

// xmlElement is any element.
type xmlElement struct {
	XMLName  xml.Name
	Attrs    []xml.Attr   `xml:",any,attr"`
	Text     string       `xml:",chardata"`
	Children []xmlElement `xml:",any"`
}

// plain returns the element as the expected data has it.
func (e xmlElement) plain() map[string]any {
	attrib, children := map[string]any{}, []any{}
	for _, a := range e.Attrs {
		attrib[rawName(a.Name)] = a.Value
	}
	for _, child := range e.Children {
		children = append(children, child.plain())
	}
	plain := map[string]any{"tag": e.XMLName.Local, "attrib": attrib, "text": strings.TrimSpace(e.Text), "children": children}
	sortChildren(plain)
	return plain
}

// sortChildren sorts children by their tags: their order is free.
func sortChildren(element any) {
	tag := func(e any) string { return e.(map[string]any)["tag"].(string) }
	children := element.(map[string]any)["children"].([]any)
	slices.SortStableFunc(children, func(a, b any) int { return strings.Compare(tag(a), tag(b)) })
	for _, child := range children {
		sortChildren(child)
	}
}

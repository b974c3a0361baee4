package configfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

type object = map[string]string

// rules show each rule: the content before, the values, and the content after. An error
// has no content after.
var rules = []struct {
	format, before string
	set            object
	after          string
}{
	{"properties", "# c\nserver-port=1\nmotd = A b\n", object{"server-port": "25565"}, "# c\nserver-port=25565\nmotd = A b\n"},
	{"properties", "a=1\r\nb=2\r\n", object{"c": "3"}, "a=1\r\nb=2\r\nc=3\r\n"},
	{"properties", "a=1", object{"b": "2"}, "a=1\nb=2\n"},
	{"properties", "", object{"b": "2", "a": "x y"}, "a=x y\nb=2\n"},
	{"properties", "a=1\na=2\n", object{"a": "3"}, "a=1\na=3\n"},
	{"properties", "a=1 \\\n   2 \\\n   3\nb=4\n", object{"a": "5"}, "a=5\nb=4\n"},
	{"properties", "a\\ b : 1\n", object{"a b": "2"}, "a\\ b : 2\n"},
	{"properties", "a b\nc\n", object{"a": "=x", "c": "y"}, "a \\=x\nc=y\n"},
	{"properties", "motd=x\n", object{"motd": " §aHällo\\ \U0001F600\n"}, "motd=\\ \\u00A7aH\\u00E4llo\\\\ \\uD83D\\uDE00\\n\n"},
	{"properties", "motd=\\u00a7a\n", object{"motd": "§a"}, "motd=\\u00a7a\n"},
	{"properties", "a=1\\", object{"b": "2"}, "a=1\\\n\nb=2\n"},
	{"properties", "a=\\u00g0\n", object{"b": "2"}, ""},
	{"properties", "# a=1\n! a=2\n", object{"a": "3"}, "# a=1\n! a=2\na=3\n"},

	{"ini", "; c\n[s]\nPort = 1 ; the port\nName=x #1\n", object{"s.Port": "2", "s.Name": "y"}, "; c\n[s]\nPort = 2 ; the port\nName=y\n"},
	{"ini", "[a]\nx=1\n[b]\ny=1\n[a]\nx=2\nz=3\n", object{"a.x": "9", "a.z": "8", "a.n": "7"}, "[a]\nx=1\nn=7\n[b]\ny=1\n[a]\nx=9\nz=8\n"},
	{"ini", "[/script/a.b]\nK=1\n\n[c]\n", object{`/script/a\.b.K`: "2", "/script/a.b.L": "3", "c.M": "4"}, "[/script/a.b]\nK=2\nL=3\n\n[c]\nM=4\n"},
	{"ini", "[/script/a.b]\nK=1\n\n[c]\n", object{"/script/a.b.K": "2", "/script/a.b.L": "3", "c.M": "4"}, "[/script/a.b]\nK=2\nL=3\n\n[c]\nM=4\n"},
	{"ini", "[s]\nk\\.x=1\n", object{`s.k\.x`: "2"}, "[s]\nk\\.x=1\nk.x=2\n"},
	{"ini", "[s]\r\n\tk = 1\r\n", object{"s.l": "2", ".top": "3", "new.n": "4"}, "top=3\r\n[s]\r\n\tk = 1\r\nl=2\r\n[new]\r\nn=4\r\n"},
	{"ini", "Name=\"My server\" ; c\n", object{".Name": "Other"}, "Name=\"Other\" ; c\n"},
	{"ini", "Name=x\n", object{".Name": "a ; b"}, "Name=\"a ; b\"\n"},
	{"ini", "A=\nB=\n", object{".A": "x", ".B": ""}, "A=x\nB=\n"},
	{"ini", "x\n", object{".x": "a\nb"}, ""},
	{"ini", "", object{"s.a": "1", "s.b": "2"}, "[s]\na=1\nb=2\n"},

	{"ini", "[Mods]\n+List=a\n+List=b\nOne=1\none=2\n", object{"mods.+LIST": "c", "mods.ONE": "3"}, "[Mods]\n+List=a\n+List=c\nOne=1\none=3\n"},
	{"ini", "[S]\nk=1\n", object{"s.K": "1", "S.new": "2", "T.x": "3", "t.y": "4"}, "[S]\nk=1\nnew=2\n[T]\nx=3\ny=4\n"},
	{"ini", "; only\n", object{".x": "1", "y": "2"}, "x=1\ny=2\n; only\n"},

	{"ini", "[s]\nport: 25565\nHost : x ; c\n", object{"s.port": "1", "s.host": "y"}, "[s]\nport: 1\nHost : y ; c\n"},
	{"ini", "port:25565\n", object{"port": "1", "new": "2"}, "port:1\nnew=2\n"},
	{"ini", "url = http://a:1\na:b = 1\n", object{"url": "http://b:2", "a:b": "2"}, "url = http://b:2\na:b = 2\n"},
	{"ini", "[s]\nmotd = one\n  two\n\tthree\n  b = 2\nlist:\n  x\n  http://y\nlast: 1\n", object{"s.motd": "new", "s.list": "z", "s.b": "3", "s.last": "4"},
		"[s]\nmotd = new\n  b = 3\nlist:z\nlast: 4\n"},
	{"ini", "  a=1\n  flag\n", object{"a": "2"}, "  a=2\n  flag\n"},

	{"text", "x\r\n#sec:\r\ny\r\n", object{"#sec:": "sec:\n  on: 1", "new": "a\r\nb"}, "x\r\nsec:\r\n  on: 1\r\ny\r\na\r\nb\r\n"},
	{"text", "a 1\n", object{"a": "a 2\na 3"}, "a 2\na 3\n"},
	{"text", "a\nb\n\n", object{"": "x"}, "x\nx\nx\n"},
	{"text", "", object{"": "x"}, "x\n"},
	{"text", "a 1\nexport PORT=1\nexport PORTS=2\n", object{"export PORT=": "export PORT=9", "x": "y"}, "a 1\nexport PORT=9\nexport PORTS=2\ny\n"},
	{"text", "foo=1\n", object{"foo": "bar"}, "bar\n"},
	{"text", "a\n", object{"b": "a2"}, "a\na2\n"},

	{"json", `{"a": {"b": [1, {"c": "x"}]}, "p": "25565"}`, object{"a.b.1.c": "y", "a.b.0": "2", "p": "1"}, `{"a": {"b": [2, {"c": "y"}]}, "p": "1"}`},
	{"json", "{\n\t\"a\": 1,\n\t\"b\": {}\n}\n", object{"c": "true", "b.x.y": "z", "a": "text", "d": "null"}, "{\n\t\"a\": \"text\",\n\t\"b\": {\"x\": {\"y\": \"z\"}},\n\t\"c\": true,\n\t\"d\": null\n}\n"},
	{"json", `{"a":1}`, object{"b": "2"}, `{"a":1,"b": 2}`},
	{"json", `{}`, object{"b": "2", "a": "<x>"}, "{\"a\": \"<x>\", \"b\": 2}"},
	{"json", "", object{"b": "2"}, "{\"b\": 2}\n"},
	{"json", `{"a": [1, 2]}`, object{"a.2": "3", "a.3": "x"}, `{"a": [1, 2, 3, "x"]}`},
	{"json", `{"a": []}`, object{"a.0": "3", "n.0": "1", "n.1": "2"}, `{"a": [3],"n": [1, 2]}`},
	{"json", `{"a": null, "a.b": 1}`, object{"a.b": "3", `a\.b`: "4"}, `{"a": {"b": 3}, "a.b": 4}`},
	{"json", `{"a": 1, "a": 2}`, object{"a": "3"}, `{"a": 1, "a": 3}`},
	{"json", "\u00a0", object{"a": "3"}, ""},
	{"json", `{"a": 1`, object{"a": "3"}, ""},
	{"json", `{"a": 1} x`, object{"a": "3"}, ""},
	{"json", `{"a": {}}`, object{"a": "3"}, ""},
	{"json", `{"a": 1}`, object{"a.b": "3"}, ""},
	{"json", `{"a": [1]}`, object{"a.5": "3"}, ""},
	{"json", `{}`, object{"a": "3", "a.b": "3"}, ""},
	{"json", `{"a": []}`, object{"a.0": "0", "a.1": "1", "a.2": "2", "a.3": "3", "a.4": "4", "a.5": "5", "a.6": "6", "a.7": "7", "a.8": "8", "a.9": "9", "a.10": "x"}, `{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "x"]}`},
	{"json", "{ \"a\" : 1 , \"b\" : 2 }", object{"c": "3"}, "{ \"a\" : 1 , \"b\" : 2 , \"c\": 3 }"},
	{"json", "{ \"a\": 1\n, \"b\": [1 ,2]\n}", object{"c": "3", "b.2": "3"}, "{ \"a\": 1\n, \"b\": [1 ,2 ,3]\n, \"c\": 3\n}"},
	{"json", "{\"a\":1\t,\t\"b\":{\n}}", object{"c": "3", "b.x": "1"}, "{\"a\":1\t,\t\"b\":{\"x\": 1\n}\t,\t\"c\": 3}"},
	{"json", `{ "a" : [ ] , "b" : "\u0041" }`, object{"a.0": "1", "b": "A"}, `{ "a" : [1 ] , "b" : "\u0041" }`},

	{"yaml", "# c\na: 1 # one\nb: 'x'\nc: \"y\"\n", object{"a": "2", "b": "it's", "c": "3"}, "# c\na: 2 # one\nb: 'it''s'\nc: \"3\"\n"},
	{"yaml", "a:\n    b:\n    - x\n    - y: 1\n      z: 2\nd: 1\n", object{"a.b.1.y": "5", "a.b.0": "q", "a.e": "f", "a.b.2": "r"}, "a:\n    b:\n    - q\n    - y: 5\n      z: 2\n    - r\n    e: f\nd: 1\n"},
	{"yaml", "a: hello\nb: no\n", object{"a": "yes", "b": "yes"}, "a: \"yes\"\nb: yes\n"},
	{"yaml", "a: x\n", object{"a": "0x1F"}, "a: \"0x1F\"\n"},
	{"yaml", "base: &b\n  x: 1\nd:\n  <<: *b\n  y: 2\n", object{"d.x": "3"}, "base: &b\n  x: 1\nd:\n  <<: *b\n  y: 2\n  x: 3\n"},
	{"yaml", "base: &b\n  x: 1\nd:\n  <<: *b\n", object{"base.x": "4"}, ""},
	{"yaml", "base: &b\n  x: 1\nd:\n  <<: *b\n", object{"base.z": "4"}, ""},
	{"yaml", "base: &b\n  x: 1\nd: 1\n", object{"base.x": "4"}, "base: &b\n  x: 4\nd: 1\n"},
	{"yaml", "a: &v 1\nb: *v\n", object{"a": "2"}, ""},
	{"yaml", "a: &v 1\nb: *v\n", object{"a": "1", "c": "2"}, "a: &v 1\nb: *v\nc: 2\n"},
	{"yaml", "%YAML 1.2\n---\na: 1\n", object{"a": "2", "b": "3"}, "%YAML 1.2\n---\na: 2\nb: 3\n"},
	{"yaml", "# c\r\n\r\n%YAML 1.2 # c\r\n%FOO x\r\n%TAG ! tag:x,2000:\r\n---\r\na: 1\r\n...\r\n%YAML 1.2\r\n---\r\nb: 1\r\n", object{"a": "2"},
		"# c\r\n\r\n%YAML 1.2 # c\r\n%FOO x\r\n%TAG ! tag:x,2000:\r\n---\r\na: 2\r\n...\r\n%YAML 1.2\r\n---\r\nb: 1\r\n"},
	{"yaml", "a: \"\\ud83d\\uDE00 x\" # \\ud83d\\ude00\nb: {c: \"\\\\ud83d \\ud83d\\ude00\", d: 1}\n", object{"a": "\U0001F600 x", "b.d": "2", "e": "\U0001F600"},
		"a: \"\\ud83d\\uDE00 x\" # \\ud83d\\ude00\nb: {c: \"\\\\ud83d \\ud83d\\ude00\", d: 2}\ne: \"\U0001F600\"\n"},
	{"yaml", "b: 1\na: |\n  x", object{"c": "q"}, "b: 1\na: |-\n  x\nc: q"},
	{"yaml", "b: 1\na: |+ # c\n  x\n  y", object{"c": "q"}, "b: 1\na: |- # c\n  x\n  y\nc: q"},
	{"yaml", "a:\n  b: >2\n     x", object{"a.c": "q", "d": "r"}, "a:\n  b: >2-\n     x\n  c: q\nd: r"},
	{"yaml", "a: |\n  x", object{"a": "yy", "c": "q"}, "a: yy\nc: q"},
	{"yaml", "a:\n  - |\n    x", object{"a.1": "yy"}, "a:\n  - |-\n    x\n  - yy"},
	{"yaml", "a: &v 1\nb: *v\n", object{"b": "2"}, "a: &v 1\nb: 2\n"},
	{"yaml", "a: &v {x: 1}\nb: *v\n", object{"b.x": "2"}, ""},
	{"yaml", "a: |\n  one\n  two\n\nb: 1\n", object{"a": "three"}, "a: three\n\nb: 1\n"},
	{"yaml", "a: one\n  two\nb: 1\n", object{"a": "three"}, "a: three\nb: 1\n"},
	{"yaml", "a:\nb:   # c\n", object{"a": "1", "b.c": "2"}, "a: 1\nb: {\"c\": 2}   # c\n"},
	{"yaml", "a: {x: 1, y: [1, 2]}\nb: []\nc: {}\n", object{"a.z": "q", "a.y.2": "3", "b.0": "x", "c.d.e": "1"}, "a: {x: 1, y: [1, 2, 3], z: q}\nb: [x]\nc: {d: {\"e\": 1}}\n"},
	{"yaml", "", object{"a.b": "1", "c.0": "x"}, "a:\n  b: 1\nc:\n  - x\n"},
	{"yaml", "# only\n", object{"a": "1"}, "# only\na: 1\n"},
	{"yaml", "a: 1\r\nb:\r\n  c: 2\r\n", object{"b.d": "3", "e": "4"}, "a: 1\r\nb:\r\n  c: 2\r\n  d: 3\r\ne: 4\r\n"},
	{"yaml", "---\na: 1\n...\n---\na: 2\n", object{"a": "3", "b": "4"}, "---\na: 3\nb: 4\n...\n---\na: 2\n"},
	{"yaml", "a: ä b\nö: {ü: 1}\n", object{"ö.ü": "2", "a": "ß, !x"}, "a: \"ß, !x\"\nö: {ü: 2}\n"},
	{"yaml", "a: |\n  \u00a0\n", object{"a": ""}, "a: \"\"\n"},
	{"yaml", "a: |4+\n", object{"b": "1"}, "a: |4+\nb: 1\n"},
	{"yaml", "a: |\u2028  x\nb: 1\n", object{"a": ""}, "a: \"\"\nb: 1\n"},
	{"yaml", "a: [\n", object{"a": "1"}, ""},
	{"yaml", "- a\n- b\n", object{"1": "c", "2": "d"}, "- a\n- c\n- d\n"},
	{"yaml", "a: 1\n", object{"a.b": "1"}, ""},
	{"yaml", "proxies:\n  velocity:\n    enabled: true\n", object{"proxies.proxy-protocol": "true", "proxies.velocity.secret": "x"}, "proxies:\n  velocity:\n    enabled: true\n    secret: x\n  proxy-protocol: true\n"},
	{"yaml", "l:\n- a\n", object{"k": "1", "l.1": "b"}, "l:\n- a\n- b\nk: 1\n"},
	{"yaml", "a:\n  b: # c\n  # d\nz: 1", object{"a.b": "x", "a.c.d.0": "1", "a.c.d.1.e": "2", "k": "Z: 1"}, "a:\n  b: x # c\n  c:\n    d:\n      - 1\n      - {\"e\": 2}\n  # d\nz: 1\nk: \"Z: 1\""},
	{"yaml", "l:\n  - a: 1\n  -\n    a: 2\n", object{"l.0.b": "x", "l.1.b": "q", "l.2": "z"}, "l:\n  - a: 1\n    b: x\n  -\n    a: 2\n    b: q\n  - z\n"},
	{"yaml", "a: {b: [1, 2, ], # c\n  }\n", object{"a.b.2": "3", "a.c": "4"}, "a: {b: [1, 2, 3, ], c: 4, # c\n  }\n"},
	{"yaml", "a: 1\na: 2\n", object{"a": "3"}, "a: 1\na: 3\n"},

	{"xml", "<a>\n  <b>1</b><!-- c -->\n  <b x='1'/>\n</a>\n", object{"/a/b": "2", "/a/b[2]/@x": "a'<", "/a/b[2]": "t"}, "<a>\n  <b>2</b><!-- c -->\n  <b x='a&#39;&lt;'>t</b>\n</a>\n"},
	{"xml", "<s>\n\t<property name=\"P\"\tvalue=\"1\" />\n</s>", object{"/s/property[@name='P']/@value": "2", "/s/property[@name='Q']/@value": "3"}, "<s>\n\t<property name=\"P\"\tvalue=\"2\" />\n\t<property name=\"Q\" value=\"3\"/>\n</s>"},
	{"xml", "<a/>", object{"/a/b/c": "1", "/a/b/@d": "2", "/a/@e": "3"}, `<a e="3"><b d="2"><c>1</c></b></a>`},
	{"xml", "", object{"/a/b": "1"}, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>\n  <b>1</b>\n</a>\n"},
	{"xml", "<a><![CDATA[x]]></a>", object{"/a": "y"}, "<a>y</a>"},
	{"xml", "<a><b/></a>", object{"/a": "y"}, ""},
	{"xml", "<a>x<![CDATA[y]]></a>", object{"/a": "xy"}, "<a>x<![CDATA[y]]></a>"},
	{"xml", "<a>\n</a>", object{"/a/b": "1", "/a/c/d/@e": "2"}, "<a>\n  <b>1</b>\n  <c><d e=\"2\"/></c>\n</a>"},
	{"xml", "<a><b/><b><c>1</c></b></a>", object{"/a/b/c": "2", "/a/b[1]/d": "3"}, "<a><b><d>3</d></b><b><c>2</c></b></a>"},
	{"xml", "<!DOCTYPE a [<!ENTITY e \"&#120;\">]><x:a x:b='1' c=\"'\"/>", object{"/x:a/@x:b": "2", "/x:a/@c": "\"", "/x:a/@x:d": "3"}, "<!DOCTYPE a [<!ENTITY e \"&#120;\">]><x:a x:b='2' c=\"&#34;\" x:d=\"3\"/>"},
	{"xml", "<!DOCTYPE a [<!ENTITY e \"xx\">]><a>&e;</a>", object{"/a": "y"}, ""},
	{"xml", "<a/>", object{"/a": "\x01"}, ""},
	{"xml", "<a></b></a>", object{"/a": "1"}, ""},
	{"xml", "<a>", object{"/a": "1"}, ""},
	{"xml", "\u00a0", object{"/a/b": "y"}, ""},
	{"xml", "<a><b></a>", object{"/a/b": "y"}, ""},
	{"xml", "<a/>", object{"/b": "y"}, ""},
	{"xml", "<a/>", object{"b": "y"}, ""},
	{"xml", "<a><b/></a>", object{"/a/b[3]": "y"}, ""},
	{"xml", "<a><b/></a>", object{"/a/b[2]": "y"}, "<a><b/><b>y</b></a>"},

	{"toml", "", object{"a": "1"}, ""},
}

func TestApply(t *testing.T) {
	for _, c := range rules {
		for _, mark := range []string{"", "\xEF\xBB\xBF"} {
			got, err := applySet(c.format, []byte(mark+c.before), c.set)
			if c.after == "" {
				assert.Error(t, err, "%s %q %v: %q", c.format, c.before, c.set, got)
				continue
			}
			assert.NoError(t, err, "%s %q %v", c.format, c.before, c.set)
			assert.Equal(t, mark+c.after, string(got), "%s %q %v", c.format, c.before, c.set)
		}
	}
}

// TestUTF16: the content of a file in UTF-16 is set as that of one in UTF-8. Some have
// positions that the parser of YAML reports in characters.
func TestUTF16(t *testing.T) {
	for _, content := range []string{"{\u2028\"x\": \"1\"}", "\u2028\u2028{}", "a:\u2028- x\u2028- y\u2028", "a=1\n", "<a>\n<b>ü</b></a>", ""} {
		for _, format := range Formats() {
			set := object{"/a/b": "\U0001F600", "a.2": "1"}
			if format == "xml" {
				delete(set, "a.2")
			}
			want, fails := applySet(format, []byte(content), set)
			for _, mark := range []string{"\xFF\xFE", "\xFE\xFF"} {
				got, err := applySet(format, utf16Of(mark, content), set)
				assert.Equal(t, fails, err, "%s %q %q", format, mark, content)
				if err == nil {
					assert.Equal(t, utf16Of(mark, string(want)), got, "%s %q %q", format, mark, content)
				}
			}
		}
		_, err := applySet("yaml", utf16Of("\xEF\xBB\xBF\xFF\xFE", content), object{"a.2": "1"})
		assert.Equal(t, errEncoding, err, "%q", content)
		_, err = applySet("yaml", append(utf16Of("\xFF\xFE", content), 'x'), object{"a.2": "1"})
		assert.Equal(t, errEncoding, err, "%q", content)
	}
}

// TestDeclaredEncodings: whatever encoding an XML file declares, its bytes stay, and a value is
// written in ASCII, with references.
func TestDeclaredEncodings(t *testing.T) {
	for name, want := range map[string]string{
		"us-ascii": "<b>&#252;&#8364;</b><c>\xE4</c>", "ISO-8859-1": "<b>&#252;&#8364;</b><c>\xE4</c>", "Windows-1252": "<b>&#252;&#8364;</b><c>\xE4</c>",
	} {
		head := "<?xml version='1.0' encoding='" + name + "'?>\n<a x='\x80'>"
		got, err := applySet("xml", []byte(head+"<b>1</b><c>\xE4</c></a>"), object{"/a/b": "ü€"})
		require.NoError(t, err, name)
		require.Equal(t, head+want+"</a>", string(got), name)
		same, err := applySet("xml", []byte(head+"<b>\xFC</b></a>"), object{"/a/b": "ü"})
		require.NoError(t, err, name)
		require.Equal(t, head+"<b>\xFC</b></a>", string(same), "%s: it is set already", name)
	}
	for _, mark := range []string{"\xFF\xFE", "\xFE\xFF"} {
		got, err := applySet("xml", utf16Of(mark, "<?xml version='1.0' encoding='UTF-16'?><a b='ä'/>"), object{"/a/@b": "ü€\U0001F600"})
		require.NoError(t, err)
		require.Equal(t, utf16Of(mark, "<?xml version='1.0' encoding='UTF-16'?><a b='&#252;&#8364;&#128512;'/>"), got)
	}
	got, err := applySet("xml", []byte("<?xml version='1.0' encoding='utf-16'?><a b='ä'/>"), object{"/a/@b": "ü"})
	require.NoError(t, err, "it is UTF-8, as .NET writes it")
	require.Equal(t, "<?xml version='1.0' encoding='utf-16'?><a b='&#252;'/>", string(got))
	got, err = applySet("xml", []byte("<?xml version='1.0' encoding='Shift_JIS'?><a b='\x83\x40' c='2'/>"), object{"/a/@c": "1"})
	require.NoError(t, err)
	require.Equal(t, "<?xml version='1.0' encoding='Shift_JIS'?><a b='\x83\x40' c='1'/>", string(got))
}

// TestErrorsNameThePlace: what cannot be parsed, and what is in the way of a key.
func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct{ format, content, key, want string }{
		{"json", "{\n  \"a\": x\n}", "a", "the file is not valid JSON: line 2, column 8: invalid character 'x' looking for beginning of value"},
		{"json", "{\n  \"ä\": {}}", "ä", "ä: is a mapping or a list, not a value (line 2, column 8)"},
		{"json", "{\"a\": 1}", "a.b", "a: is a value, not a mapping or a list (line 1, column 7)"},
		{"yaml", "a: 1\nb: [1\nc: 2\n", "a", "the file is not valid YAML: line 3, column 2: did not find expected ',' or ']'"},
		{"yaml", "a: 1\nb: {c: 1}\n", "b", "b: is a mapping or a list, not a value (line 2, column 4)"},
		{"yaml", "a: 1\nb:\n  - x\n", "a.c", "a: is a value, not a mapping or a list (line 1, column 4)"},
		{"xml", "<a>\n  <b></c></a>", "/a/b", "the file is not valid XML: line 2, column 10: </c> ends no open element"},
		{"xml", "<a>\n  <b x=1/></a>", "/a/b", "the file is not valid XML: line 2, column 9: unquoted or missing attribute value in element"},
		{"properties", "a=1\nä=\\u00x\n", "a", `line 2, column 3: \u must be followed by four hexadecimal digits`},
	} {
		_, err := applySet(c.format, []byte(c.content), object{c.key: "1"})
		assert.EqualError(t, err, c.want, "%s %q", c.format, c.content)
	}
}

func TestPanicIsAnError(t *testing.T) {
	broken := format{set: func([]byte, []entry) ([]byte, error) { panic("no such line") }}
	got, err := broken.to([]byte("a: 1\n"), []Edit{{Key: "a", Value: "2"}})
	require.ErrorIs(t, err, errPanic)
	require.ErrorContains(t, err, "no such line")
	require.Nil(t, got)
}

// utf16Of returns a text in UTF-16 in the byte order that the mark ends with.
func utf16Of(mark, text string) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if strings.HasSuffix(mark, "\xFF") {
		order = binary.BigEndian
	}
	content := []byte(mark)
	for _, unit := range utf16.Encode([]rune(text)) {
		content = order.AppendUint16(content, unit)
	}
	return content
}

// TestTwoKeysOfOneValue: several keys may lead to one value.
func TestTwoKeysOfOneValue(t *testing.T) {
	for _, content := range []string{"a=123", "", "[s]\nk=v"} {
		_, err := applySet("ini", []byte(content), object{"a": "1", ".a": "1"})
		require.NoError(t, err, "%q", content)
		_, err = applySet("ini", []byte(content), object{"a": "1", ".a": "2"})
		require.EqualError(t, err, "a: is the same key as .a, and has another value", "%q", content)
	}
	changed, err := applySet("ini", []byte("b="), object{"a": "1", "b": "2"})
	require.NoError(t, err)
	require.Equal(t, "b=2\na=1", string(changed))
	for value, want := range map[string]string{"x": `<a><b n="x"/></a>`, "y": ""} {
		changed, err := applySet("xml", []byte("<a/>"), object{"/a/b[@n='x']/@n": value})
		require.Equal(t, want == "", err != nil)
		require.Equal(t, want, string(changed))
	}
	for content, want := range map[string]string{"<a/>": `<a b="1"/>`, `<a b="0"/>`: `<a b="1"/>`} {
		changed, err := applySet("xml", []byte(content), object{"/a/@b": "1", "/a[1]/@b": "1"})
		require.NoError(t, err)
		require.Equal(t, want, string(changed))
		changed, err = applySet("xml", []byte(content), object{"/a/@b": "1", "/a[1]/@b": "2"})
		require.NoError(t, err)
		require.Equal(t, `<a b="2"/>`, string(changed), "the last one counts")
	}
	var many strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&many, " a%d=''", i)
	}
	_, err = applySet("xml", []byte("<a"+many.String()+"/>"), object{"/a/@a7": "1"})
	require.NoError(t, err)
	_, err = applySet("xml", []byte(`<a b="1" b="1"/>`), object{"/a/@c": "1"})
	require.EqualError(t, err, "the file is not valid XML: line 1, column 17: the attribute b of a stands twice")
	changed, err = applySet("xml", []byte("<a></a>"), object{"/a": "1", "/a[1]": "1"})
	require.NoError(t, err)
	require.Equal(t, "<a>1</a>", string(changed))
}

func TestLimits(t *testing.T) {
	_, err := applySet("text", make([]byte, MaxSize+1), nil)
	require.ErrorIs(t, err, errSize)
	_, err = applySet("text", bytes.Repeat([]byte("x"), MaxSize), object{"a": "b"})
	require.ErrorIs(t, err, errSize)
	_, err = applySet("yaml", []byte(strings.Repeat("[", 100_000)), object{"a": "b"})
	require.Error(t, err)
	_, err = applySet("yaml", []byte("["+strings.Repeat("a,", maxNodes/5)+"]"), object{"a": "b"})
	require.ErrorIs(t, err, errNodes)
	_, err = applySet("json", []byte(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), object{"a": "b"})
	require.Error(t, err)
	_, err = applySet("xml", []byte(strings.Repeat("<a>", 5000)+strings.Repeat("</a>", 5000)), object{"/a": "b"})
	require.ErrorIs(t, err, errDepth)
	bomb := "a: &a [x,x]\nb: &b [*a,*a]\n"
	for c := 'c'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [*" + string(c-1) + ",*" + string(c-1) + "]\n"
	}
	_, err = applySet("yaml", []byte(bomb), object{"new": "b"})
	require.NoError(t, err, "aliases are not expanded")
}

// TestOneValueOfManyLines: each line of a file becomes a long value, which is a gigabyte.
func TestOneValueOfManyLines(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := applySet("text", []byte(strings.Repeat("a\n", 128<<10)), object{"a": "a" + strings.Repeat("x", 60_000)})
	require.ErrorIs(t, err, errSize)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

// TestHostileFiles: files for which an earlier editor, or another library, took a time that grows
// with the square of their size.
func TestHostileFiles(t *testing.T) {
	set := map[string]object{"yaml": {}, "json": {}, "xml": {}, "text": {}}
	for i := range 250 {
		set["yaml"][fmt.Sprint("k", i)], set["json"][fmt.Sprint(i)], set["text"][strings.Repeat("a", i+1)+"b"] = "1", "1", "1"
		set["xml"][fmt.Sprint("/a/k", i)], set["xml"][fmt.Sprintf("/a/b[@x='%d']", i)] = "1", "1"
	}
	many := func(part string) string { return strings.Repeat(part, 400_000/len(part)) }
	for _, c := range []struct{ format, content string }{
		{"yaml", "{" + many("k1: 1,    ") + "}"}, {"yaml", many("k1: &a x #\n")}, {"yaml", many("[")}, {"yaml", many("- ")}, {"yaml", many("? ")}, {"yaml", "a: |\n" + many("  x\n\n\n\n\n")},
		{"json", "[" + many("1,") + "1]"}, {"json", many("[")}, {"text", many("aa\n")}, {"text", many("a")},
		{"xml", "<a>" + many("<b x='y'/>") + "</a>"}, {"xml", "<a>" + many("x<!-- -->") + "</a>"}, {"xml", "<a>" + many("<![CDATA[x]]>") + "</a>"},
		{"xml", "<a>" + many(" ") + "<b/></a>"}, {"yaml", "a:\n" + many(" ") + "b: 1\n"}, {"yaml", many(" ") + "k: 1\n"}, {"json", "[" + many(" ") + "1]"}, {"xml", "<a" + many(" x") + "/>"}, {"xml", many("<a>")},
		{"properties", many("\\\n")}, {"properties", many("\\u0041")}, {"ini", many("a ;")}, {"ini", many("[a]\n")},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpuTime(t)
		_, err := applySet(c.format, []byte(c.content), set[c.format])
		if err != nil {
			require.NotErrorIs(t, err, errPanic)
			require.Less(t, len(err.Error()), 500)
		}
		require.Less(t, cpuTime(t)-began, 8*time.Second, "%s %q…", c.format, c.content[:10])
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(80<<20), "%s %q…", c.format, c.content[:10])
	}
}

// cpuTime returns the time that the processors worked for this process: a busy host does not
// change it.
func cpuTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestDeepKeys: a new key of 500 names would be as many lines, each with more spaces.
func TestDeepKeys(t *testing.T) {
	set := map[string]object{"yaml": {}, "json": {}, "xml": {}}
	for i := range 250 {
		set["yaml"][fmt.Sprint("k", i, strings.Repeat(".a", 500))] = "1"
		set["json"][fmt.Sprint("k", i, strings.Repeat(".a", 500))] = "1"
		set["xml"][fmt.Sprint("/k/k", i, strings.Repeat("/a", 500))] = "1"
	}
	for format, set := range set {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := applySet(format, nil, set)
		require.ErrorContains(t, err, "must have at most 32 names")
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	}
}

// value is a value of a file, of any kind.
func value() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "1", "-0.5e3", "true", "null", "yes", "off", "~", "0x1F", "1:30", "01", "a: b", "a #b", "- a",
		"{}", "[", "'", `"`, "\\", " a ", "a\nb", "&a", "*a", "!t", "%", "@", "`", "|", ">", "2020-01-01", "<&>", "ünï"}))
}

// TestJSONReadsBack sets random values in random documents: they read back as they
// were set, and nothing else has changed.
func TestJSONReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), rapid.String(), 0, 5).Draw(t, "doc")
		before, err := json.MarshalIndent(doc, "", rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent"))
		require.NoError(t, err)
		key, wanted := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "key"), value().Draw(t, "value")
		after, err := applySet("json", before, object{key: wanted})
		require.NoError(t, err, "%s", before)
		var got map[string]any
		require.NoError(t, json.Unmarshal(after, &got), "%s", after)
		old, existed := doc[key]
		checkValue(t, got[key], wanted, existed)
		delete(got, key)
		delete(doc, key)
		for name, v := range doc {
			require.Equal(t, v, got[name])
		}
		require.Len(t, got, len(doc))
		_ = old
	})
}

// checkValue compares a value as a parser of JSON or yaml reads it. quoted reports
// whether a string was there before.
func checkValue(t require.TestingT, got any, wanted string, quoted bool) {
	if bare(wanted) && !quoted {
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, wanted, string(text))
		return
	}
	require.Equal(t, wanted, got)
}

// document returns documents of YAML in every style, with the names at their top. It
// leaves out what the library's decoder does not read though its encoder wrote it, and
// line breaks that only YAML 1.1 has: Apply may refuse such a file.
func document() *rapid.Generator[written] {
	draw := func(t *rapid.T) written {
		var doc yaml.Node
		doc.Kind = yaml.MappingNode
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 5, rapid.ID).Draw(t, "names")
		for _, name := range names {
			child := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value().Draw(t, "old"),
				Style: rapid.SampledFrom([]yaml.Style{0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}).Draw(t, "style")}
			if rapid.Bool().Draw(t, "nested") {
				child = &yaml.Node{Kind: yaml.MappingNode, Style: rapid.SampledFrom([]yaml.Style{0, yaml.FlowStyle}).Draw(t, "style"),
					Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "in"}, child}}
			}
			child.LineComment = rapid.SampledFrom([]string{"", "# note"}).Draw(t, "comment")
			doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, child)
		}
		text, err := yaml.Marshal(&doc)
		require.NoError(t, err)
		return written{string(text), names}
	}
	return rapid.Custom(draw).Filter(func(w written) bool {
		return !strings.ContainsAny(w.text, "\u0085\u2028\u2029") && yaml.Unmarshal([]byte(w.text), &map[string]any{}) == nil
	})
}

type written struct {
	text  string
	names []string
}

// TestYAMLBlockIndent changes blocks whose header names their indent.
func TestYAMLBlockIndent(t *testing.T) {
	for before, want := range map[string]string{
		"a: |4-\n     A\n    A\nb: 1\n":       "a: x\nb: 1\n",
		"- a: |2\n     A\n    A\n  b: 1\n":    "- a: x\n  b: 1\n",
		"- - |1\n    A\n   A\n  - 1\n":        "- - x\n  - 1\n",
		"s:\n  a: >1\n     A\n   A\n  b: 1\n": "s:\n  a: x\n  b: 1\n",
	} {
		key := map[string]string{"a: ": "a", "- a": "0.a", "- -": "0.0", "s:\n": "s.a"}[before[:3]]
		after, err := applySet("yaml", []byte(before), object{key: "x"})
		require.NoError(t, err, before)
		require.Equal(t, want, string(after))
	}
}

// TestYAMLReadsBack does so with documents in every style.
func TestYAMLReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := document().Draw(t, "document")
		before, names := []byte(drawn.text), drawn.names
		var old map[string]any
		require.NoError(t, yaml.Unmarshal(before, &old))
		name, wanted := rapid.SampledFrom(append(names, "new")).Draw(t, "name"), value().Draw(t, "value")
		key := name
		inner, nested := old[name].(map[string]any)
		if nested {
			key += "." + rapid.SampledFrom([]string{"in", "new"}).Draw(t, "key")
		}
		after, err := applySet("yaml", before, object{key: wanted})
		require.NoError(t, err, "%q %s %q", before, key, wanted)
		var got map[string]any
		require.NoError(t, yaml.Unmarshal(after, &got), "%q", after)
		leaf := got[name]
		if nested {
			leaf = got[name].(map[string]any)[strings.TrimPrefix(key, name+".")]
			delete(inner, strings.TrimPrefix(key, name+"."))
			delete(got[name].(map[string]any), strings.TrimPrefix(key, name+"."))
		} else {
			delete(old, name)
			delete(got, name)
		}
		if text, isString := leaf.(string); isString || !bare(wanted) {
			require.Equal(t, wanted, text, "%q", after)
		} else {
			checkValue(t, leaf, wanted, false)
		}
		require.Equal(t, old, got, "%q", after)
	})
}

// TestXMLReadsBack does so with attributes and texts.
func TestXMLReadsBack(t *testing.T) {
	type property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
		Text  string `xml:"text,omitempty"`
	}
	type file struct {
		XMLName xml.Name   `xml:"s"`
		List    []property `xml:"p"`
	}
	rapid.Check(t, func(t *rapid.T) {
		var f file
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 5, rapid.ID).Draw(t, "names") {
			f.List = append(f.List, property{Name: name, Value: rapid.StringMatching(`[ -~]{0,5}`).Draw(t, "old")})
		}
		before, err := xml.MarshalIndent(f, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		require.NoError(t, err)
		i := rapid.IntRange(0, len(f.List)-1).Draw(t, "i")
		f.List[i].Value, f.List[i].Text = rapid.StringMatching(`[ -~äöü\n\t]{0,5}`).Draw(t, "value"), rapid.StringMatching(`[ -~äöü\n\t]{0,5}`).Draw(t, "text")
		at := "/s/p[@name='" + f.List[i].Name + "']"
		after, err := applySet("xml", before, object{at + "/@value": f.List[i].Value, at + "/text": f.List[i].Text})
		require.NoError(t, err, "%s", before)
		var got file
		require.NoError(t, xml.Unmarshal(after, &got), "%s", after)
		require.Equal(t, f.List, got.List, "%s", after)
	})
}

// FuzzApply: no content makes Apply panic, and what it accepts it does not change again.
func FuzzApply(f *testing.F) {
	for _, name := range Formats() {
		for _, content := range []string{"", "a=1\n[s]\nk=v", "a: {b: [1]}", `{"a": [1, {"b": null}]}`, "<a b='1'><c/>t</a>", "a: |+\n  x\n\n", "- &x a\n- *x",
			"{\u2028\"x\": \"1\"}", "a:\u2028- x\u0085- y\u2029"} {
			f.Add(name, content, "a.b", "v", "/a/c[2]/@d", "1")
			f.Add(name, content, "a", "v", ".a", "v")
			f.Add(name, "\xff\xfe", "x", "\xb1", "a", "v")
			f.Add(name, string(utf16Of("\xFF\xFE", content)), "a.b", "v", "a.2", "1")
			f.Add(name, string(utf16Of("\xEF\xBB\xBF\xFE\xFF", content)), "a.b", "v", "a.2", "1")
		}
	}
	f.Fuzz(func(t *testing.T, format, content, key, value, key2, value2 string) {
		set := object{key: value, key2: value2}
		once, err := applySet(format, []byte(content), set)
		require.NotErrorIs(t, err, errPanic)
		if err != nil {
			return
		}
		twice, err := applySet(format, once, set)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func applySet(format string, content []byte, set object) ([]byte, error) {
	return Apply(format, content, Change{Set: set})
}

package egg

import (
	"path"
	"regexp"
	"strings"

	v1 "berth/api/v1"
)

// The bounds of config_files.
const (
	maxEdits = 500  // of one file
	maxKey   = 1024 // bytes
)

// formats maps the parsers of eggs to the formats of berth.
func formats() map[string]string {
	return map[string]string{"file": "text", "properties": "properties", "yaml": "yaml", "yml": "yaml", "json": "json",
		"ini": "ini", "xml": "xml"}
}

// configFiles sets config_files.
func (i *importer) configFiles() {
	seen := map[string]bool{}
	for _, f := range i.egg.files {
		at := "config.files: " + quoted(f.path)
		format, known := formats()[f.parser]
		file := path.Clean(strings.TrimLeft(i.expandPath(f.path), "/"))
		edits := i.edits(at, format, f.find)
		switch {
		case !known:
			i.note("%s: the parser %s is not known", at, quoted(f.parser))
		case v1.CheckPath(file) != nil || file == ".":
			i.note("%s: is not a path in the volume", at)
		case seen[file]:
			i.note("%s: is there twice: the first one counts", at)
		case len(edits) > 0:
			seen[file] = true
			i.spec.ConfigFiles = append(i.spec.ConfigFiles, configFileOf(v1.EscapePath(file), format, f.create, edits))
		}
	}
}

// pathVariable matches a variable in a path.
var pathVariable = regexp.MustCompile(`\{\{([\w.-]*)\}\}|\$\{(\w+)\}`)

// expandPath replaces the variables of a path by their values now: a file has one name.
func (i *importer) expandPath(text string) string {
	return pathVariable.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.ToUpper(strings.Trim(found, "${}"))
		value, is := i.env[name[strings.LastIndexByte(name, '.')+1:]]
		if !is {
			return found
		}
		i.note("config.files: %s: holds the value that %s has now", quoted(text), name)
		return value
	})
}

// edits returns the edits of one file in their order.
func (i *importer) edits(at, format string, find value) (edits []v1.ConfigEdit) {
	for n, key := range find.names {
		conditions := []string{""}
		values := []value{find.values[n]}
		if v := find.values[n]; v.kind == mapping {
			conditions, values = v.names, v.values
		}
		for c, v := range values {
			if v.kind == list || v.kind == mapping {
				i.note("%s: %s: a list or a map cannot be a value", at, quoted(key))
				continue
			}
			e := v1.ConfigEdit{If: conditions[c]}
			if format == "text" || format == "ini" || format == "xml" {
				e.If = "" // the panels ignore it there
			}
			e.Key, e.Value = translate(format, key, i.expand(at, v.text, strings.HasPrefix(e.If, v1.ConditionExpression)))
			switch {
			case len(edits) == maxEdits:
				i.note("%s: has more than %d keys: the others are left out", at, maxEdits)
				return edits
			case len(e.Key) > maxKey || len(e.Value) > v1.MaxConfigValue || strings.ContainsAny(e.Key, "\x00\r\n") ||
				strings.ContainsRune(e.Value, 0) || e.Key == "" && format != "text":
				i.note("%s: %s: the key or the value is too long or has characters that are not allowed", at, quoted(key))
			default:
				edits = append(edits, e)
			}
		}
	}
	return edits
}

// translate returns a key in berth's form; an attribute of xml is a part of its key.
func translate(format, key, value string) (string, string) {
	switch format {
	case "ini":
		return iniKey(key), value
	case "xml":
		return xmlKey(key, value)
	case "yaml", "json":
		return strings.NewReplacer("~1", `\.`, "~0", "~").Replace(key), value
	}
	return key, value
}

// iniKey divides a key at its first dot outside brackets, which are dropped. berth divides at
// the last one that is not escaped.
func iniKey(key string) string {
	section, name := "", key
	if dots := dotsOutside(key); len(dots) > 0 {
		section, name = key[:dots[0]], key[dots[0]+1:]
	}
	escape := func(s string) string {
		return strings.ReplaceAll(strings.NewReplacer("[", "", "]", "").Replace(s), ".", `\.`)
	}
	return escape(section) + "." + escape(name)
}

// dotsOutside returns the places of the dots of a key that are outside brackets.
func dotsOutside(key string) (dots []int) {
	depth := 0
	for at := range len(key) {
		switch key[at] {
		case '[':
			depth++
		case ']':
			depth--
		case '.':
			if depth <= 0 {
				dots = append(dots, at)
			}
		}
	}
	return dots
}

// xmlAttribute matches a value that sets an attribute.
var xmlAttribute = regexp.MustCompile(`^\[(\w+)='(.*)'\]$`)

// xmlKey returns the path of a key with dots, from the root element.
func xmlKey(key, value string) (string, string) {
	path, start := "", 0
	for _, dot := range append(dotsOutside(key), len(key)) {
		path += "/" + key[start:dot]
		start = dot + 1
	}
	if m := xmlAttribute.FindStringSubmatch(value); m != nil {
		return path + "/@" + m[1], m[2]
	}
	return path, value
}

// inValue matches a placeholder in a value. Only those of the bridge's address may have spaces.
var inValue = regexp.MustCompile(`\{\{ ?config\.docker\.(network\.)?interface ?\}\}|\{\{[\w.-]*\}\}`)

// dollar matches what berth would expand in a value.
var dollar = regexp.MustCompile(`\$\{[^{}]*\}`)

// expand returns a value whose placeholders are those of berth, and everything else is literal. A
// template is what replaces the matches of an expression: its groups stay.
func (i *importer) expand(at, text string, template bool) string {
	var out strings.Builder
	add := func(literal string) {
		if !template {
			literal = dollar.ReplaceAllString(literal, "$$$0")
		}
		out.WriteString(literal)
	}
	for {
		found := inValue.FindStringIndex(text)
		if found == nil {
			add(text)
			return out.String()
		}
		add(text[:found[0]])
		name := strings.Trim(text[found[0]:found[1]], "{} ")
		value, known := i.placeholder(name)
		switch {
		case !known:
			i.note("%s: %s is not known, and stays as it is", at, quoted(text[found[0]:found[1]]))
			value = text[found[0]:found[1]]
		case value == "":
			i.note("%s: the server has no %s: it is empty, as for the panels", at, quoted(text[found[0]:found[1]]))
		case strings.HasSuffix(out.String(), "$") && strings.HasPrefix(value, "${"):
			i.note("%s: a $ before %s cannot be written: the value is the one that it has now", at, quoted(text[found[0]:found[1]]))
			value = dollar.ReplaceAllString(i.env[value[2:len(value)-1]], "$$$0")
		}
		out.WriteString(value)
		text = text[found[1]:]
	}
}

// placeholder returns what stands for a name in a value. Names of a server and of variables that
// nobody has are empty, as for the panels.
func (i *importer) placeholder(name string) (value string, known bool) {
	fixed := map[string]string{
		"server.build.default.port": "${SERVER_PORT}", "server.allocations.default.port": "${SERVER_PORT}",
		"server.build.default.ip": "${SERVER_IP}", "server.allocations.default.ip": "${SERVER_IP}",
		"server.build.memory": "${SERVER_MEMORY}", "server.build.memory_limit": "${SERVER_MEMORY}",
		"server.uuid": "${P_SERVER_UUID}", "server.meta.name": i.request.InternalID,
		"server.build.image": i.spec.Image, "server.container.image": i.spec.Image,
		"config.docker.interface": "${BERTH_GATEWAY}", "config.docker.network.interface": "${BERTH_GATEWAY}",
	}
	if text, is := fixed[name]; is {
		return text, true
	}
	for _, prefix := range []string{"server.build.env.", "server.build.environment.", "server.environment.", "env."} {
		if variable, is := strings.CutPrefix(name, prefix); is {
			if upper := strings.ToUpper(variable); i.names[upper] {
				return "${" + upper + "}", true
			}
			return "", true
		}
	}
	return "", strings.HasPrefix(name, "server.") || strings.HasPrefix(name, "env.")
}

// configFileOf returns a file of config_files. A line that a text lacks is not added, as for the
// panels.
func configFileOf(path, format string, create bool, edits []v1.ConfigEdit) v1.ConfigFile {
	f := v1.ConfigFile{Path: path, Format: format, Edits: edits}
	if format == "text" {
		f.Append = new(false)
	}
	if !create {
		f.Create = new(false)
	}
	return f
}

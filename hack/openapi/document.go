package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"berth/api/server"
	v1 "berth/api/v1"
)

// document is the file that is written by hand, with the lines that are added to it.
type document struct {
	lines    []string
	added    map[int][]string // by the number of the line behind which they are
	root     *yaml.Node
	comments map[string]string    // of fields, by type and name, such as "Port.IP"
	done     map[string]schemaUse // by the name of a schema
	faults   []error
}

// generate returns the document of the module in a directory.
func generate(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "hack", "openapi", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	d := &document{lines: strings.SplitAfter(string(text), "\n"), added: map[int][]string{}, done: map[string]schemaUse{}}
	var top yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	d.root = top.Content[0]
	if d.comments, err = comments(filepath.Join(root, "api", "v1"), filepath.Join(root, "api", "server")); err != nil {
		return nil, err
	}
	for _, o := range server.Operations() {
		d.operation(o)
	}
	d.others()
	d.examples(d.root)
	if len(d.faults) > 0 {
		return nil, errors.Join(d.faults...)
	}
	var out bytes.Buffer
	for i, line := range d.lines {
		out.WriteString(line)
		if i == 0 { // openapi: 3.1.0
			out.WriteString("# Written by go generate ./api from hack/openapi and the code: do not edit it.\n")
		}
		for _, more := range d.added[i+1] {
			out.WriteString(more + "\n")
		}
	}
	return out.Bytes(), nil
}

func (d *document) fail(format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf(format, args...))
}

// add adds lines behind that of a key, indented as what is in its mapping.
func (d *document) add(key *yaml.Node, lines ...string) {
	for _, line := range lines {
		d.added[key.Line] = append(d.added[key.Line], strings.Repeat(" ", key.Column+1)+line)
	}
}

// find returns the key and the value at a path of a mapping, or nil.
func find(n *yaml.Node, path ...string) (key, value *yaml.Node) {
	value = n
	for _, name := range path {
		i := -1
		if value != nil && value.Kind == yaml.MappingNode {
			i = slices.IndexFunc(value.Content, func(c *yaml.Node) bool { return c.Value == name })
		}
		for i >= 0 && i%2 == 1 { // a value, not a key
			next := slices.IndexFunc(value.Content[i+1:], func(c *yaml.Node) bool { return c.Value == name })
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 {
			return nil, nil
		}
		key, value = value.Content[i], value.Content[i+1]
	}
	return key, value
}

// refusals are the names of the responses in components, by status.
var refusals = map[string]string{"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound",
	"405": "MethodNotAllowed",
	"408": "RequestTimeout", "409": "Conflict", "413": "ContentTooLarge", "415": "UnsupportedMediaType", "422": "KeyReused",
	"429": "TooManyRequests", "500": "InternalError", "503": "ServiceUnavailable"}

// statuses returns the refusals of every route like o.
func statuses(o server.Operation) []string {
	if o.Public {
		return []string{"403", "405"}
	}
	list := []string{"400", "401", "403", "405", "408", "500"}
	if strings.Contains(o.Path, "{") {
		list = append(list, "404")
	}
	if o.In != nil {
		list = append(list, "413", "415", "503")
	}
	if o.Idempotent {
		list = append(list, "409", "422", "429")
	}
	slices.Sort(list)
	return list
}

// parameters returns the components of the parameters that a route has.
func parameters(o server.Operation) (list []string) {
	for name, component := range map[string]string{"{volume}": "volumeInPath", "{id}": "idInPath", "{backup}": "backupInPath",
		"{ip}": "ipInPath", "{port}": "portInPath"} {
		if strings.Contains(o.Path, name) {
			list = append(list, component)
		}
	}
	slices.Sort(list)
	for component, has := range map[string]bool{"OnBehalfOf": !o.Public, "IdempotencyKey": o.Idempotent, "tokenInQuery": o.TokenInQuery} {
		if has {
			list = append(list, component)
		}
	}
	slices.Sort(list)
	return list
}

// operation completes the operation of a route.
func (d *document) operation(o server.Operation) {
	name := o.Method + " " + o.Path
	_, node := find(d.root, "paths", o.Path, strings.ToLower(o.Method))
	if node == nil {
		d.fail("%s: is not in hack/openapi/openapi.yaml", name)
		return
	}
	id, _ := find(node, "operationId")
	at := *id // a sibling of what is added
	at.Column -= 2
	if o.Scope != "" {
		d.add(&at, "x-scope: "+string(o.Scope))
	}
	if o.Public {
		d.add(&at, "security: []")
	}
	key, _ := find(node, "parameters")
	if list := parameters(o); len(list) > 0 {
		if key == nil {
			d.add(&at, "parameters:")
			key = &yaml.Node{Line: at.Line, Column: at.Column + 2}
		}
		for _, component := range list {
			d.add(key, "- {$ref: '#/components/parameters/"+component+"'}")
		}
	}
	key, responses := find(node, "responses")
	for _, status := range statuses(o) {
		if given, _ := find(responses, status); given == nil {
			d.add(key, "'"+status+"': {$ref: '#/components/responses/"+refusals[status]+"'}")
		}
	}
	for i := 0; i < len(responses.Content); i += 2 {
		d.headers(o, responses.Content[i], responses.Content[i+1])
	}
	d.bodies(name, o, node)
}

// headers adds the headers of an answer that is not a component.
func (d *document) headers(o server.Operation, status, answer *yaml.Node) {
	if ref, _ := find(answer, "$ref"); ref != nil || answer.Style&yaml.FlowStyle != 0 {
		return
	}
	lines := []string{"X-Request-Id: {$ref: '#/components/headers/RequestId'}"}
	if o.Idempotent && status.Value[0] == '2' {
		lines = append(lines, "Idempotent-Replayed: {$ref: '#/components/headers/IdempotentReplayed'}")
	}
	key, _ := find(answer, "headers")
	if key == nil {
		d.add(status, "headers:")
		key = &yaml.Node{Line: status.Line, Column: status.Column + 2}
	}
	d.add(key, lines...)
}

// bodies completes the schemas of the bodies of an operation.
func (d *document) bodies(name string, o server.Operation, node *yaml.Node) {
	if _, schema := find(node, "requestBody", "content", "application/json", "schema"); o.In != nil {
		d.schema(name+" request", schema, schemaUse{o.In, true})
	}
	_, responses := find(node, "responses")
	for _, status := range []string{"200", "201"} {
		if _, schema := find(responses, status, "content", "application/json", "schema"); schema != nil && o.Out != nil {
			d.schema(name+" "+status, schema, schemaUse{o.Out, false})
		}
	}
}

// examples completes the examples of a container in answers, which have each field: those that an
// example lacks have their defaults.
func (d *document) examples(n *yaml.Node) {
	uid, _ := find(n, "uid")
	state, _ := find(n, "install_state")
	if n.Style&yaml.FlowStyle == 0 || uid == nil || state == nil {
		for _, inner := range n.Content {
			d.examples(inner)
		}
		return
	}
	text, err := json.Marshal(v1.WithDefaults(v1.ContainerView{}))
	values := map[string]json.RawMessage{}
	if err = errors.Join(err, json.Unmarshal(text, &values)); err != nil {
		d.fail("the defaults of a container: %w", err)
	}
	var missing []string
	for _, f := range v1.Fields(reflect.TypeFor[v1.ContainerView]()) {
		if given, _ := find(n, f.Name); given == nil && values[f.Name] != nil {
			missing = append(missing, f.Name+": "+string(values[f.Name])+",")
		}
	}
	if !strings.HasSuffix(d.lines[n.Line-1], ",\n") {
		d.fail("line %d: the first line of an example must end with a comma", n.Line)
	}
	if len(missing) > 0 {
		d.added[n.Line] = append(d.added[n.Line], strings.Repeat(" ", n.Column)+strings.Join(missing, " "))
	}
}

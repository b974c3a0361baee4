package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	v1 "berth/api/v1"
)

// schemaUse is the struct of a schema, and whether it is that of a request.
type schemaUse struct {
	reflect.Type
	request bool
}

// others completes the schemas that no operation names alone.
func (d *document) others() {
	for name, use := range map[string]schemaUse{
		"Container":         {reflect.TypeFor[v1.ContainerView](), false},
		"ContainerDeclared": {reflect.TypeFor[v1.ContainerSpec](), false},
		"ContainerSummary":  {reflect.TypeFor[v1.ContainerSummary](), false},
		"DryRunResult":      {reflect.TypeFor[v1.Changes](), false},
	} {
		d.component(name, use)
	}
}

// component completes a component once.
func (d *document) component(name string, use schemaUse) {
	if used, done := d.done[name]; done {
		if used.Type != use.Type {
			d.fail("the schema %s is both %s and %s", name, used.Type, use.Type)
		}
		return
	}
	d.done[name] = use
	key, schema := find(d.root, "components", "schemas", name)
	if schema == nil {
		d.fail("the schema %s is not in hack/openapi/openapi.yaml", name)
		return
	}
	d.object(name, key, schema, use)
}

// schema completes what a $ref names, or the schema itself.
func (d *document) schema(name string, schema *yaml.Node, use schemaUse) {
	for use.Kind() == reflect.Pointer || use.Kind() == reflect.Slice {
		use.Type = use.Elem()
		if _, items := find(schema, "items"); items != nil {
			schema = items
		}
	}
	_, ref := find(schema, "$ref")
	if use.Kind() != reflect.Struct || use.Type == reflect.TypeFor[time.Time]() || ref == nil {
		return
	}
	d.component(strings.TrimPrefix(ref.Value, "#/components/schemas/"), use)
}

// object adds the fields of a struct that a schema lacks, and which are required.
func (d *document) object(name string, key, schema *yaml.Node, use schemaUse) {
	propertiesKey, properties := find(schema, "properties")
	if schema.Style&yaml.FlowStyle != 0 || properties == nil {
		return // such as a value that is any of others
	}
	known := map[string]bool{"stats": use.Type == reflect.TypeFor[v1.ContainerSummary]()} // of a list that is measured
	var required []string
	for _, f := range v1.Fields(use.Type) {
		known[f.Name] = f.Access != "-"
		if f.Access == "-" || !use.request && f.Access == "writeonly" || use.request && f.Access == "readonly" {
			continue
		}
		if isRequired(f, use) {
			required = append(required, f.Name)
		}
		if _, property := find(properties, f.Name); property != nil {
			d.schema(name+"."+f.Name, property, schemaUse{f.Type, use.request})
		} else {
			d.add(propertiesKey, d.property(f, use)...)
		}
	}
	if more, has := reflect.Zero(use.Type).Interface().(interface{ IgnoredFields() []string }); has {
		for _, field := range more.IgnoredFields() {
			known[field] = true
		}
	}
	for i := 0; i < len(properties.Content); i += 2 {
		if field := properties.Content[i].Value; !known[field] {
			d.fail("the schema %s has the field %s, which %s has not", name, field, use.Type)
		}
	}
	if given, _ := find(schema, "required"); given == nil && len(required) > 0 {
		d.add(key, "required: ["+strings.Join(required, ", ")+"]")
	}
}

// isRequired reports whether each request, or answer, has a field.
func isRequired(f v1.Field, use schemaUse) bool {
	if use.request {
		return f.Access == "required"
	}
	_, whole := reflect.Zero(use.Type).Interface().(interface{ MarshalJSON() ([]byte, error) })
	return whole || !strings.Contains(f.Tag.Get("json"), ",omit")
}

// property returns the lines of a field, whose description is its comment.
func (d *document) property(f v1.Field, use schemaUse) []string {
	kind, nullable := f.Type, use.request
	if kind.Kind() == reflect.Pointer {
		kind, nullable = kind.Elem(), use.request || f.Tag.Get("default") == ""
	}
	text := map[reflect.Kind]string{reflect.Bool: "boolean", reflect.String: "string", reflect.Float64: "number", reflect.Slice: "array",
		reflect.Map: "object"}[kind.Kind()]
	if text == "" {
		text = "integer"
	}
	if kind == reflect.TypeFor[time.Time]() || kind == reflect.TypeFor[v1.Duration]() {
		text = "string"
	}
	if nullable || kind == reflect.TypeFor[v1.NullString]() {
		text = "[" + text + ", 'null']"
	}
	lines := []string{f.Name + ":", "  type: " + text}
	switch {
	case kind == reflect.TypeFor[time.Time]():
		lines = append(lines, "  format: date-time")
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.String:
		lines = append(lines, "  items: {type: string}")
	case kind.Kind() == reflect.Map:
		lines = append(lines, "  additionalProperties: {type: string}")
	}
	declaring := use.Type
	if n := len(f.Index) - 1; n > 0 {
		declaring = declaring.FieldByIndex(f.Index[:n]).Type
	}
	description := d.comments[declaring.Name()+"."+f.Name]
	if description == "" {
		d.fail("%s.%s: the field has no comment, which is its description", declaring.Name(), f.Name)
	}
	return append(lines, "  description: "+quote(description))
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// comments returns the comments of the fields of all structs in some directories, by type and
// name in JSON.
func comments(dirs ...string) (map[string]string, error) {
	all := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, _ := n.(*ast.TypeSpec)
				if spec == nil {
					return true
				}
				if s, is := spec.Type.(*ast.StructType); is {
					for _, f := range s.Fields.List {
						if text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " "); text != "" {
							all[spec.Name.Name+"."+jsonName(f)] = strings.ToUpper(text[:1]) + text[1:]
						}
					}
				}
				return true
			})
		}
	}
	return all, nil
}

func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	return name
}

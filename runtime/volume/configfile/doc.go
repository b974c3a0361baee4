// Package configfile sets values in configuration files of game servers: properties,
// ini, yaml, json, xml and text.
//
// Apply edits bytes: only those of the values change, so comments, order, indents and
// line endings stay. Files are read with the parsers of the standard library and of
// yaml.v3, which report positions; properties, ini and text are read line by line. A
// second application changes nothing: Apply verifies that, and so also that each value
// reads back as it was requested.
//
// configfile.go has Apply and the edits. Each format has a file of its name: tree.go has the
// values to set in yaml and json, yaml_end.go finds the end of a node, yaml_scalar.go its
// beginning and writes scalars, yaml_verify.go compares a file before and after; xml_path.go
// parses the keys of xml and makes its edits.
//
// The content comes from a tenant and may be anything. The package reads no file, and
// must not know volumes and containers.
package configfile

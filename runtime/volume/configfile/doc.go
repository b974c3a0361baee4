// Package configfile sets values in configuration files of game servers: properties,
// ini, yaml, json, xml and text.
//
// Apply changes only the bytes of the values, so comments, order and line endings stay. No
// library that was tried writes a parsed file back like that, so each format finds the positions
// of its values and edits the text; xml keeps each tag as it was written. An added key is
// written in one usual form. A second application changes nothing: Apply verifies that, and so
// also that each value reads back as it was requested.
//
// The content comes from a tenant and may be anything: sizes, nodes and depths are bounded before
// something is built from them. The package reads no file, and must not know volumes and
// containers.
package configfile

// Package fieldtest lists and changes the fields of a struct by reflection. Tests use it
// to find a field that was added in one place and forgotten in another.
package fieldtest

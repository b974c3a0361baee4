// Package yamlfile decodes a YAML file strictly into a struct: an unknown or
// repeated key is an error, and so is a value of the wrong type. Each error names
// the key and the line, and never repeats the value, which may be a secret.
//
// It knows neither the configuration nor containers.
package yamlfile

package yamlfile

import (
	"bytes"
	"encoding/json"

	"gopkg.in/yaml.v3"
)

// FromJSON returns a JSON value as a YAML document with its keys in the same order.
func FromJSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	root, err := node(decoder)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

// node returns the next value of a decoder.
func node(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return collection(decoder, token)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	}
	n := new(yaml.Node)
	return n, n.Encode(token)
}

// collection returns the mapping or list that begins with open.
func collection(decoder *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode // its keys and values alternate, as the decoder's tokens do
	}
	for decoder.More() {
		child, err := node(decoder)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err := decoder.Token() // the closing delimiter
	return n, err
}

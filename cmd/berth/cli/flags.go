package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// checkedText is the value of a flag that is checked before the command runs, so that a
// wrong one is an error of usage and no request is sent.
type checkedText struct {
	text  *string
	check func(text string) error // its error repeats the text
}

func (c checkedText) String() string { return *c.text }

// Set implements pflag.Value. An empty text selects the default.
func (c checkedText) Set(text string) error {
	if *c.text = text; text == "" {
		return nil
	}
	return c.check(text)
}

// Type implements pflag.Value.
func (c checkedText) Type() string { return "string" }

// checkedFlag adds a flag whose value must pass a check.
func checkedFlag(cmd *cobra.Command, into *string, name, usage string, check func(text string) error) {
	cmd.Flags().Var(checkedText{into, check}, name, usage)
}

func checkURL(text string) error {
	_, err := client.New(client.Options{URL: text})
	return err
}

func checkDuration(text string) error {
	_, err := v1.ParseDuration(text)
	return err
}

func checkSize(text string) error {
	_, err := v1.ParseSize(text)
	return err
}

// oneOf returns a check for one of some words.
func oneOf(words ...string) func(text string) error {
	return func(text string) error {
		if slices.Contains(words, text) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
	}
}

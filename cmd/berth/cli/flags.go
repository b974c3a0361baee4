package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

func (c checkedText) Set(text string) error {
	*c.text = text
	return c.check(text)
}

// Type implements pflag.Value.
func (c checkedText) Type() string { return "string" }

// checkedFlag adds a flag whose value must pass a check.
func checkedFlag(cmd *cobra.Command, into *string, name, usage string, check func(text string) error) {
	cmd.Flags().Var(checkedText{into, check}, name, usage)
}

// checkURL allows an empty text: it selects the default.
func checkURL(text string) error {
	if text == "" {
		return nil
	}
	_, err := client.New(client.Options{URL: text})
	return err
}

func checkDuration(text string) error {
	if text == "" {
		return nil
	}
	_, err := v1.ParseDuration(text)
	return err
}

func checkSize(text string) error {
	if text == "" {
		return nil
	}
	_, err := v1.ParseSize(text)
	return err
}

// oneOf returns a check for one of some words.
func oneOf(words ...string) func(text string) error {
	return func(text string) error {
		if text == "" || slices.Contains(words, text) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
	}
}

// flagError returns the error of a flag that cannot be parsed: the flag, its value and
// the values that it takes.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		return invalidValue(invalid.GetFlag(), invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value: %s", missing.GetFlag().Name, usageOf(missing.GetFlag()))
	}
	return err
}

func invalidValue(flag *pflag.Flag, value string, cause error) error {
	if _, checked := flag.Value.(checkedText); checked {
		return fmt.Errorf("--%s: %w", flag.Name, cause)
	}
	var takes string
	switch flag.Value.Type() {
	case "int", "int64":
		takes = "must be a whole number"
		if errors.Is(cause, strconv.ErrRange) {
			takes = "is too large"
		}
	case "bool":
		takes = "must be true or false"
	case "duration":
		takes = "must be a duration such as 90s, 5m or 1h30m"
	case "stringToString":
		takes = "must be name=value"
	default:
		takes = cause.Error()
	}
	return fmt.Errorf("--%s: %q %s", flag.Name, value, takes)
}

// usageOf returns the help of a flag.
func usageOf(flag *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(flag)
	return usage
}

// exclusiveFlags is the annotation that cobra.Command.MarkFlagsMutuallyExclusive adds.
const exclusiveFlags = "cobra_annotation_mutually_exclusive"

// checkFlags returns an error for flags that are missing, or exclude each other.
func checkFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if err == nil && !flag.Changed && len(flag.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			err = fmt.Errorf("--%s is missing: %s; usage: %s", flag.Name, usageOf(flag), cmd.UseLine())
		}
	})
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, group := range flag.Annotations[exclusiveFlags] {
			given := slices.DeleteFunc(strings.Fields(group), func(name string) bool { return !cmd.Flags().Changed(name) })
			if err == nil && len(given) > 1 {
				err = fmt.Errorf("give either --%s, not both", strings.Join(given, " or --"))
			}
		}
	})
	return err
}

// noCommand refuses a command that does not exist, and names those that may have been meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2 // cobra sets it for the root alone
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		text += "; did you mean " + strings.Join(meant, ", ") + "?"
	}
	return errors.New(text)
}

// noArguments refuses arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, but received %q", cmd.CommandPath(), args[0])
}

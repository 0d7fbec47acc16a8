package cmdutil

import (
	"encoding/csv"
	"strings"

	"github.com/spf13/pflag"
)

// ListVar defines a flag that adds values to a list: those between commas, and
// it may be given several times.
func ListVar(f *pflag.FlagSet, list *[]string, name, usage string) {
	f.Var(&listValue{list, true}, name, usage)
}

// RepeatVar defines a flag that adds its value to a list each time it is given.
func RepeatVar(f *pflag.FlagSet, list *[]string, name, usage string) {
	f.Var(&listValue{list, false}, name, usage)
}

// listValue is what pflag's lists are, without a CSV writer, of 4 KB and more,
// for the default of every flag of every command.
type listValue struct {
	list   *[]string
	commas bool
}

func (v *listValue) Set(text string) error {
	values := []string{text}
	if v.commas {
		if text == "" {
			return nil
		}
		var err error
		if values, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			return err
		}
	}
	*v.list = append(*v.list, values...)
	return nil
}

func (v *listValue) Type() string { return "strings" }

func (v *listValue) String() string { return strings.Join(*v.list, ",") }

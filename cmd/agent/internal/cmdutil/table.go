package cmdutil

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows in aligned columns. It escapes nothing: untrusted text must
// be made printable first, see package display.
type Table struct {
	w   *tabwriter.Writer
	out *bufio.Writer // the writer above writes each cell separately
}

// NewTable returns a table with a first row of headers, if there are any.
func NewTable(out io.Writer, headers ...string) *Table {
	whole := bufio.NewWriter(out)
	t := &Table{tabwriter.NewWriter(whole, 0, 0, 2, ' ', 0), whole}
	if len(headers) > 0 {
		fmt.Fprintln(t.w, strings.Join(headers, "\t"))
	}
	return t
}

// Row adds a row. Each cell is formatted as by [fmt.Print].
func (t *Table) Row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, cell)
	}
	fmt.Fprintln(t.w)
}

// Flush prints the rows. Rows added later are aligned independently.
func (t *Table) Flush() error { return errors.Join(t.w.Flush(), t.out.Flush()) }

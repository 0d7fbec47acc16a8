package page

import (
	"net/http"
	"strconv"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/store"
)

// indexRows is the number of sessions on one page of the index.
const indexRows = 200

// indexView is what the template of the index gets.
type indexView struct {
	Title   string
	Policy  string
	Problem string
	Period  string
	Tables  []insight.Table
	Rows    []indexRow
	Page    int
	Numbers []int
}

// indexRow is a session in the index.
type indexRow struct {
	store.Summary
	Live bool
}

// Title is the beginning of the session's first input.
func (r indexRow) Title() string {
	if t := display.OneLine(r.Text, 100); t != "" {
		return t
	}
	return r.ID
}

func (p pages) index(w http.ResponseWriter, req *http.Request) {
	v := indexView{Title: "Sessions", Policy: policy(true, script), Page: 1}
	if n, err := strconv.Atoi(req.URL.Query().Get("page")); err == nil && n > 1 {
		v.Page = n
	}
	list, err := p.list()
	if err != nil {
		v.Problem = "Sessions that cannot be read: " + err.Error()
	}
	for n := 0; n*indexRows < len(list); n++ {
		v.Numbers = append(v.Numbers, n+1)
	}
	from := min((v.Page-1)*indexRows, len(list))
	for _, s := range list[from:min(from+indexRows, len(list))] {
		v.Rows = append(v.Rows, indexRow{s, p.source.Running(s.ID)})
	}
	if v.Page == 1 {
		report, err := p.insights(req.Context())
		if err != nil {
			v.Problem = err.Error()
		} else {
			v.Tables, v.Period = report.Tables(), report.Period()
		}
	}
	p.printer.write(w, "index", v)
}

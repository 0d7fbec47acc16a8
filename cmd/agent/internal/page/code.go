package page

import (
	"context"
	"crypto/rand"
	_ "embed"
	"io"
	"net/http"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

var (
	//go:embed assets/code.html
	codeHTML string
	//go:embed assets/code.js
	codeScript string
)

// Symbol is a file, or something that a file defines.
type Symbol struct {
	Name, Kind, File string
	Line             int
}

// Dependency says that a symbol depends on another; both are indices.
type Dependency struct {
	From, To int
	// Confidence is from 0, the highest, to 2. An import, which spreads no change, is 3.
	Confidence int
}

// Code is what depends on what in the code of a directory.
type Code struct {
	Title   string
	Symbols []Symbol
	Uses    []Dependency
	Cycles  [][]string // files that import each other
	// Start is the symbol that is chosen at first; negative for none.
	Start int
}

// codeView is what the template of the page gets.
type codeView struct {
	Title, Policy                   string
	FileCount, NodeCount, EdgeCount int
	Data                            codeData
}

// codeData is what the script of the page gets.
type codeData struct {
	Files  []string `json:"files"`
	Nodes  [][]any  `json:"nodes"` // name, kind, file, line
	Edges  []int    `json:"edges"` // from, to, confidence
	Cycles [][]int  `json:"cycles"`
	Start  int      `json:"start"`
}

func (c Code) view(served bool) codeView {
	d := codeData{Files: []string{}, Nodes: make([][]any, len(c.Symbols)), Edges: make([]int, 0, 3*len(c.Uses)), Cycles: [][]int{}, Start: c.Start}
	files := map[string]int{}
	file := func(name string) int {
		i, ok := files[name]
		if !ok {
			i = len(d.Files)
			files[name], d.Files = i, append(d.Files, display.OneLine(name, 500))
		}
		return i
	}
	for i, s := range c.Symbols {
		d.Nodes[i] = []any{display.OneLine(s.Name, 300), s.Kind, file(s.File), s.Line}
	}
	for _, e := range c.Uses {
		d.Edges = append(d.Edges, e.From, e.To, e.Confidence)
	}
	for _, names := range c.Cycles {
		ring := make([]int, len(names))
		for i, name := range names {
			ring[i] = file(name)
		}
		d.Cycles = append(d.Cycles, ring)
	}
	symbols := 0
	for _, s := range c.Symbols {
		if s.Kind != "file" && s.Kind != "package" {
			symbols++
		}
	}
	return codeView{
		Title: display.OneLine(c.Title, 200), Policy: policy(served, codeScript), FileCount: len(d.Files), NodeCount: symbols,
		EdgeCount: len(c.Uses), Data: d,
	}
}

// Export writes the page as one file that needs nothing else.
func (c Code) Export(w io.Writer) error {
	html, err := newPrinter(time.Local).render("code", c.view(false))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, html)
	return err
}

// NewCodeServer returns a server for the page of some code, which is read again for each
// request, with a new random token.
func NewCodeServer(read func(ctx context.Context) (Code, error)) *Server {
	return &Server{token: rand.Text(), script: codeScript, routes: func(mux *http.ServeMux, base string) {
		p := newPrinter(time.Local)
		mux.HandleFunc("GET "+base+"/{$}", func(w http.ResponseWriter, req *http.Request) {
			c, err := read(req.Context())
			if err != nil {
				fail(w, err)
				return
			}
			p.write(w, "code", c.view(true))
		})
	}}
}

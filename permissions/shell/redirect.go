package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirection.
func (w *walker) redirect(st *state, r *syntax.Redirect) {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		w.unclear(r, "keeps a file descriptor in a variable")
	}
	kind := Write
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.document(st, r.Hdoc)
		return
	case syntax.WordHdoc:
		w.single(st, r.Word)
		return
	case syntax.RdrIn:
		kind = Read
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.DplIn, syntax.DplOut:
	default:
		w.unclear(r, "is an unsupported redirection")
		return
	}
	targets := w.words(st, r.Word)
	if len(targets) != 1 || targets[0].many {
		w.unclear(r, "redirects to a file only known at run time")
		return
	}
	target := &targets[0]
	if r.Op == syntax.DplIn || r.Op == syntax.DplOut {
		switch {
		case target.kind == literal && isDescriptor(target.text):
			return
		case r.Op == syntax.DplIn:
			w.unclear(r, "duplicates an unknown file descriptor")
			return
		}
	}
	w.opens(st, r, target, kind)
}

func isDescriptor(text string) bool {
	return strings.Trim(strings.TrimSuffix(text, "-"), "0123456789") == ""
}

// opens records the file of a redirection.
func (w *walker) opens(st *state, r *syntax.Redirect, target *word, kind Kind) {
	if target.isPipe() {
		return
	}
	if target.kind != literal || target.text == "" {
		w.unclear(r, "redirects to a file only known at run time")
		return
	}
	for _, prefix := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if host, ok := strings.CutPrefix(target.text, prefix); ok {
			w.out.Redirects = append(w.out.Redirects, Access{Kind: Network, Path: host, Text: w.source(r), Offset: w.offset(r)})
			w.unclear(r, "opens a network connection")
			return
		}
	}
	a := Access{Kind: kind, Text: w.source(r), Offset: w.offset(r)}
	if r.Op == syntax.RdrOut || r.Op == syntax.RdrClob || r.Op == syntax.RdrAll {
		a.Loss = LosesAll
	}
	accesses, ok := w.accesses(st, &target.value, a)
	if !ok {
		w.unclear(r, "redirects to a path in an unknown directory")
	}
	w.out.Redirects = append(w.out.Redirects, accesses...)
}

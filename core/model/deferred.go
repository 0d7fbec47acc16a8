package model

// ToolSearch is the name of the tool by which a model finds deferred tools. Its
// results are ToolReferences. Where a service has a tool of its own for that,
// this one is sent as such.
const ToolSearch = "tool_search"

// Deferrer is a [Provider] whose service can leave tools out of the prompt and
// take them up where a ToolReference names them, so that the beginning of the
// conversation stays the same. It is safe for concurrent use.
type Deferrer interface {
	// DefersTools reports whether that holds for a model; empty stands for the
	// provider's own.
	DefersTools(model string) bool
}

// DefersTools reports whether deferred tools stay out of the prompt of a model
// of p. Other providers send them with the others.
func DefersTools(p Provider, model string) bool {
	d, ok := p.(Deferrer)
	return ok && d.DefersTools(model)
}

// DefersTools implements [Deferrer].
func (r *retrying) DefersTools(model string) bool { return DefersTools(r.Provider, model) }

// DefersTools implements [Deferrer]: all providers that may have to answer must
// do so.
func (f *falling) DefersTools(model string) bool {
	for i, p := range f.all {
		if i > 0 {
			model = ""
		}
		if !DefersTools(p, model) {
			return false
		}
	}
	return true
}

package model

// ToolSearch is the name of the tool that finds deferred tools. Its results are
// ToolReferences. A service with a built-in tool search gets it as that.
const ToolSearch = "tool_search"

// Deferrer is a [Provider] whose service can leave tools out of the prompt until
// a ToolReference names them, so that the beginning of the conversation stays
// the same. It is safe for concurrent use.
type Deferrer interface {
	// DefersTools reports whether the service does so for a model; empty means
	// the provider's default model.
	DefersTools(model string) bool
}

// DefersTools reports whether p leaves deferred tools out of the model's prompt.
// Other providers send all tools.
func DefersTools(p Provider, model string) bool {
	d, ok := p.(Deferrer)
	return ok && d.DefersTools(model)
}

// DefersTools implements [Deferrer].
func (r *retrying) DefersTools(model string) bool { return DefersTools(r.Provider, model) }

// DefersTools implements [Deferrer]: all providers that may answer must do so.
func (f *fallback) DefersTools(model string) bool {
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

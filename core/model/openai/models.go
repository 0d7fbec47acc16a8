package openai

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// family is a set of models with the same efforts, from least to most. Models
// without efforts do not reason, and reject the parameter.
type family struct {
	names   *regexp.Regexp
	efforts []string
}

// families are taken from the model pages below
// https://platform.openai.com/docs/models. The first match wins.
var families = sync.OnceValue(func() []family {
	f := func(names string, efforts ...string) family { return family{regexp.MustCompile(names), efforts} }
	return []family{
		f(`chat|^gpt-[34]`),
		f(`^o\d|^codex-mini`, "low", "medium", "high"),
		f(`^gpt-5-pro`, "high"),
		f(`^gpt-5(\.1)?-codex(-mini)?(-\d|$)`, "low", "medium", "high"),
		f(`^gpt-.*-codex`, "low", "medium", "high", "xhigh"),
		f(`^gpt-.*-pro(-|$)`, "medium", "high", "xhigh"),
		f(`^gpt-5(-|$)`, "minimal", "low", "medium", "high"),
		f(`^gpt-5\.1(-|$)`, "none", "low", "medium", "high"),
		f(`^gpt-([5-9]|\d\d)`, "none", "low", "medium", "high", "xhigh"),
	}
})

// efforts returns the efforts of a model, and whether the model is known. A
// fine-tuned model has those of its base model.
func efforts(name string) (list []string, known bool) {
	name = strings.TrimPrefix(name, "ft:")
	for _, f := range families() {
		if f.names.MatchString(name) {
			return f.efforts, true
		}
	}
	return nil, false
}

// reasons reports whether a model is known to reason.
func reasons(name string) bool {
	list, _ := efforts(name)
	return len(list) > 0
}

// effort returns the model's least effort that is at least e, or else its
// highest. It is empty for a model that does not reason. For an unknown effort or
// model, such as a deployment, it is e.
func effort(name string, e model.Effort) string {
	scale := []string{"none", "minimal", "low", "medium", "high", "xhigh"}
	wanted := slices.Index(scale, string(e))
	list, known := efforts(name)
	if wanted < 0 || !known {
		return string(e)
	}
	for _, supported := range list {
		if slices.Index(scale, supported) >= wanted {
			return supported
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

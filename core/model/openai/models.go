package openai

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// family is models that have the same efforts, from least to most. Those without
// any do not reason, and refuse to be asked for it.
type family struct {
	names   *regexp.Regexp
	efforts []string
}

// families come from the pages of the models below
// https://platform.openai.com/docs/models. The first that matches counts.
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

// efforts returns those of a model, and whether the model is known. A tuned one
// has the efforts of that which it was made of.
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

// effort returns the least effort of a model that is as much as e, or its most.
// It is empty for a model that does not reason. An effort or a model that is not
// known here, such as a deployment, goes to the service as it is.
func effort(name string, e model.Effort) string {
	scale := []string{"none", "minimal", "low", "medium", "high", "xhigh"}
	wanted := slices.Index(scale, string(e))
	list, known := efforts(name)
	if wanted < 0 || !known {
		return string(e)
	}
	for _, has := range list {
		if slices.Index(scale, has) >= wanted {
			return has
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

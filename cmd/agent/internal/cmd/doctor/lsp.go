package doctor

import (
	"context"
	"errors"
	"strings"
)

// checkLanguageServers names the language servers on this machine.
func (d *doctor) checkLanguageServers(context.Context) finding {
	switch {
	case d.set == nil:
		return found(healthSkip, "the settings are invalid")
	case d.set.Settings.LSP.Enabled == "off":
		return found(healthOK, "off (lsp.enabled)")
	}
	o, problems := d.set.LanguageServers()
	var list []string
	for _, s := range o.Servers {
		list = append(list, s.Name+" ("+s.Command[0]+")")
	}
	text := "none found; they are optional"
	if len(list) > 0 {
		text = strings.Join(list, ", ")
	}
	if len(problems) > 0 {
		return found(healthWarn, "%s; not used: %v", text, errors.Join(problems...)).fix("see docs/lsp.md")
	}
	return found(healthOK, "%s", text)
}

package tui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// maxPlainItems limits the items that are listed line by line.
const maxPlainItems = 30

// lines lists items with their numbers.
func (l *List) lines() []string {
	var out []string
	for i, item := range l.Items {
		if i == maxPlainItems && len(l.Items) > maxPlainItems+1 {
			out = append(out, fmt.Sprintf("  … and %d more", len(l.Items)-i))
			break
		}
		line := fmt.Sprintf("  %d: %s", i+1, display.VisibleLine(item.Label, 200))
		if item.Detail != "" {
			line += ", " + display.VisibleLine(item.Detail, 200)
		}
		out = append(out, line)
	}
	return out
}

// pickLine takes a line as the choice of an item: its number, or a part of its label
// that no other item has.
func (d *dialog) pickLine(line string) (*core.Answer, error) {
	line = strings.TrimSpace(line)
	if line == "" {
		return &core.Answer{}, nil
	}
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > len(d.list.Items) {
		if n, err = d.list.find(line); err != nil {
			return nil, err
		}
	}
	d.chosen = n - 1
	return &core.Answer{Choice: core.ChoiceYes}, nil
}

// find returns the number of the item with a label, or with the only one that
// contains the text.
func (l *List) find(text string) (int, error) {
	var found []int
	for i, item := range l.Items {
		if item.Label == text {
			return i + 1, nil
		}
		if strings.Contains(strings.ToLower(item.Label), strings.ToLower(text)) {
			found = append(found, i+1)
		}
	}
	switch len(found) {
	case 0:
		return 0, errors.New("no item has that name: enter a number, or a part of a name")
	case 1:
		return found[0], nil
	}
	return 0, fmt.Errorf("%d items have that in their name: enter a number, or more of the name", len(found))
}

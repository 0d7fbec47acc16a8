package root

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	codeSpan = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
)

// TestContents reads the guide from its contents: docs/README.md lists every page,
// and each page ends with a link to the next.
func TestContents(t *testing.T) {
	data, err := os.ReadFile(docs("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	listed := map[string]bool{}
	for _, m := range pageLink.FindAllStringSubmatch(string(data), -1) {
		if filepath.Ext(m[1]) == ".md" && !strings.HasPrefix(m[1], "..") {
			order, listed[m[1]] = append(order, m[1]), true
		}
	}
	all, err := filepath.Glob(docs("*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range all {
		if name := filepath.Base(page); name != "README.md" && !listed[name] {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
	for i, name := range order[:len(order)-1] {
		data, err := os.ReadFile(docs(name))
		if err != nil {
			t.Error(err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); !strings.HasPrefix(last, "Next: [") || !strings.HasSuffix(last, "]("+order[i+1]+")") {
			t.Errorf("the last line of docs/%s is %q; docs/README.md says that %s is next", name, last, order[i+1])
		}
	}
}

// TestLinks follows the links between pages: files and headings exist.
func TestLinks(t *testing.T) {
	headings := map[string]map[string]bool{}
	links := 0
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(string(data), ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if headings[target] == nil {
				headings[target] = anchorsOf(t, target)
			}
			if !headings[target][anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if links < 100 { // else they are not recognised
		t.Errorf("found %d links", links)
	}
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dropped := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(strings.ReplaceAll(string(data), "\r", ""), -1) {
		anchors[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return anchors
}

// TestPartsOfExamples compares the Go code on pages with the tested file that a
// comment before it names.
func TestPartsOfExamples(t *testing.T) {
	part := regexp.MustCompile("(?ms)^<!-- part of: (\\S+) -->\n```go\n(.*?)^```")
	parts := 0
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range part.FindAllStringSubmatch(strings.ReplaceAll(string(data), "\r", ""), -1) {
			parts++
			source, err := os.ReadFile(filepath.Join(docs(".."), m[1]))
			if err != nil {
				t.Errorf("%s: %v", page, err)
			} else if !strings.Contains(strings.ReplaceAll(string(source), "\r", ""), m[2]) {
				t.Errorf("%s: this is no longer a part of %s:\n%s", page, m[1], m[2])
			}
		}
	}
	if parts < 4 { // else they are not recognised
		t.Errorf("found %d parts", parts)
	}
}

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
	"github.com/seed-009c0928/agent/skills"
)

// dataset contains labelled queries for suites of skills.
type dataset struct {
	skills  map[string][]*skills.Skill
	bundled []*skills.Skill
	queries []query
}

type query struct {
	Suite    string   `json:"suite"`
	ID       string   `json:"id"`
	Query    string   `json:"query"`
	Expected []string `json:"expected"`
	NegOf    string   `json:"neg_of"`
}

// maxLine bounds a query, in bytes.
const maxLine = 1 << 20

func load(files fs.FS) (*dataset, error) {
	text, err := readSkills(files)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Suite, Name, Description, When, Body string
		Triggers                             skills.Triggers
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("skills.json: %w", err)
	}
	d := &dataset{skills: map[string][]*skills.Skill{}}
	places := skills.Places(skills.PlaceOptions{Bundled: bundled.Files})
	d.bundled = skills.NewLibrary(skills.LibraryOptions{Places: places}).Catalog().Active()
	for _, s := range list {
		m := skills.Manifest{Name: s.Name, Description: s.Description, WhenToUse: s.When, Body: s.Body, Triggers: s.Triggers}
		d.skills[s.Suite] = append(d.skills[s.Suite], &skills.Skill{Manifest: m, Scope: skills.ScopeUser, State: skills.StateOn})
	}
	f, err := files.Open("queries.jsonl")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var q query
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("queries.jsonl: line %d: %w", n, err)
		}
		d.queries = append(d.queries, q)
	}
	return d, lines.Err()
}

// readSkills reads skills.json, which may be compressed.
func readSkills(files fs.FS) ([]byte, error) {
	f, err := files.Open("skills.json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ReadFile(files, "skills.json")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("skills.json.gz: %w", err)
	}
	return io.ReadAll(z)
}

// labelled returns the names of the suites that have queries.
func (d *dataset) labelled() []string {
	return slices.DeleteFunc(d.suites(), func(name string) bool {
		return !slices.ContainsFunc(d.queries, func(q query) bool { return q.Suite == name })
	})
}

// suites returns the names of the suites.
func (d *dataset) suites() []string {
	var names []string
	for name := range d.skills {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

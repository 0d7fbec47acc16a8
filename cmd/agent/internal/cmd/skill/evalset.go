package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// evalCase is a query and whether the skill should be activated by it.
type evalCase struct {
	Query   string `json:"query"`
	Trigger bool   `json:"shouldTrigger"`
	file    string
}

// maxEvalFile bounds a file of cases, in bytes.
const maxEvalFile = 8 << 20

// evalFiles are where a skill's cases are, relative to its folder.
var evalFiles = []string{"evals/evals.json", "evals/*trigger*.json", "evals.json", "eval.json", "*trigger*.json"}

// readCases reads all cases in a skill's folder, each query once.
func readCases(dir string) ([]evalCase, error) {
	var all []evalCase
	for _, pattern := range evalFiles {
		files, err := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			cases, err := readCaseFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, cases...)
		}
	}
	return distinct(all)
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // there is no way to escape
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func readCaseFile(file string) ([]evalCase, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxEvalFile {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", file, info.Size(), maxEvalFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	cases, err := parseCases(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range cases {
		cases[i].file = file
	}
	return cases, nil
}

// distinct drops repeated queries. One that should and should not trigger is an
// error.
func distinct(cases []evalCase) ([]evalCase, error) {
	seen := map[string]evalCase{}
	var all []evalCase
	for _, c := range cases {
		before, ok := seen[c.Query]
		if ok && before.Trigger != c.Trigger {
			return nil, fmt.Errorf("%s: the query %q should trigger here and not in %s, or the reverse: keep one", c.file, c.Query, before.file)
		}
		if !ok {
			seen[c.Query] = c
			all = append(all, c)
		}
	}
	return all, nil
}

// parseCases reads a trigger set, [{query, should_trigger}], or the evals of a
// skill, {skill_name, evals: [{prompt}]}, whose prompts should trigger it unless
// they say otherwise. The list may also be called queries, cases or triggers.
func parseCases(data []byte) ([]evalCase, error) {
	type entry struct {
		Query   string `json:"query"`
		Prompt  string `json:"prompt"`
		Trigger *bool  `json:"should_trigger"`
	}
	var list []entry
	plain := json.Unmarshal(data, &list)
	if plain != nil {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return nil, fmt.Errorf("expected a list of {query, should_trigger}, or an object with evals: %w", plain)
		}
		name := slices.IndexFunc([]string{"evals", "queries", "cases", "triggers"}, func(key string) bool { return object[key] != nil })
		if name < 0 {
			return nil, errors.New("expected a list of {query, should_trigger}, or an object with evals")
		}
		if err := json.Unmarshal(object[[]string{"evals", "queries", "cases", "triggers"}[name]], &list); err != nil {
			return nil, fmt.Errorf("expected a list of {prompt} or {query, should_trigger}: %w", err)
		}
	}
	var cases []evalCase
	for i, e := range list {
		query := strings.TrimSpace(e.Query)
		if query == "" {
			query = strings.TrimSpace(e.Prompt)
		}
		switch {
		case query == "":
			return nil, fmt.Errorf("entry %d has neither query nor prompt", i+1)
		case plain == nil && e.Trigger == nil && e.Query != "":
			return nil, fmt.Errorf("entry %d: should_trigger is missing: true or false", i+1)
		}
		cases = append(cases, evalCase{Query: query, Trigger: e.Trigger == nil || *e.Trigger})
	}
	return cases, nil
}

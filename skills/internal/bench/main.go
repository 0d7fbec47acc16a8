package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	dir := flags.String("data", "skills/internal/bench/testdata", "the `directory` of skills.json and queries.jsonl")
	asJSON := flags.Bool("json", false, "print JSON")
	wrong := flags.Bool("wrong", false, "print unexpected activations")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := load(os.DirFS(*dir))
	if err != nil {
		return err
	}
	suites := data.labelled()
	if flags.NArg() > 0 {
		for _, name := range flags.Args() {
			if !slices.Contains(suites, name) {
				return fmt.Errorf("no suite %q: the data has %q", name, suites)
			}
		}
		suites = flags.Args()
	}
	var all []report
	log := io.Discard
	if *wrong {
		log = out
	}
	for _, suite := range suites {
		for _, pool := range pools {
			all = append(all, data.score(suite, pool, log))
		}
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	for _, r := range all {
		r.print(out)
	}
	return nil
}

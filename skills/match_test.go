package skills_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/skills"
)

// skill builds a skill from the parts of a SKILL.md.
func skill(t testing.TB, name, description, more, body string) *skills.Skill {
	t.Helper()
	m, diagnostics := skills.Parse(name, []byte(skillText(name, description, more, body)))
	if m == nil {
		t.Fatal(diagnostics)
	}
	return &skills.Skill{Manifest: *m, Scope: skills.ScopeUser, State: skills.StateOn, File: name + "/SKILL.md", Files: fstest.MapFS{}}
}

func describe(list []skills.Match) string {
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%s by %s %s", m.Skill.Name, m.By, m.Trigger))
	}
	return strings.Join(out, "; ")
}

func TestMatch(t *testing.T) {
	t.Parallel()
	m := skills.NewMatcher([]*skills.Skill{
		skill(t, "pdf-tools", "Works with PDF files.", "triggers:\n  keywords: [pdf form, merge two pdfs, pdf]\n  verbs: [split, rotate]\n  patterns: ['pages? \\d+ (to|-) \\d+']\n", "Use qpdf."),
		skill(t, "invoices", "Writes invoices for customers.", "triggers: {keywords: [monthly invoice, Invoice]}\n", "As a PDF."),
		skill(t, "deploy", "Puts a release on the servers.", "disable-model-invocation: true\ntriggers: {keywords: [deploy the release]}\n", "Carefully."),
		skill(t, "greedy", "Wants everything.", "triggers:\n  keywords: [the file, this function]\n  patterns: ['\\w+ing']\n", "x"),
		skill(t, "terraform-modules", "Writes Terraform modules. Use when asked for \"terraform module layout\" or remote state handling.", "", "Terraform, HCL, providers."),
		skill(t, "kubernetes-rollouts", "Plans rollouts on Kubernetes clusters with canaries.", "", "kubectl rollout canary."),
	})
	for _, tt := range []struct{ query, want string }{
		{"Fill in this PDF form for me", "pdf-tools by phrase pdf form"},
		{"fill in these PDF forms", "pdf-tools by phrase pdf form"},
		{"Is the pdf any good?", ""}, // a single word only ranks
		{"Rotate the scanned pdf", "pdf-tools by keyword+verb rotate + pdf"},
		{"I rotated every pdf yesterday", "pdf-tools by keyword+verb rotate + pdf"},
		{"Rotate page 3 to 9", "pdf-tools by pattern pages? \\d+ (to|-) \\d+"},
		{"Rotate one, and then look at all the other documents that came in over the weekend, one is a pdf", ""}, // too far apart
		{"/pdf-tools a.pdf", "pdf-tools by name pdf-tools"},
		{"/PDF-Tools a.pdf", "pdf-tools by name PDF-Tools"},
		{"$invoices for this", "invoices by name invoices"},
		{"/pdf-tools $invoices for this", "pdf-tools by name pdf-tools; invoices by name invoices"},
		{"Use /invoices for this", "invoices by name invoices"},
		{"Use $invoices for this", ""}, // a variable
		{"$invoices = array(); // why is it empty?", ""},
		{"Do not run /pdf-tools, just look", ""},
		{"please use the pdf-tools skill", "pdf-tools by pattern pdf-tools"},
		{"don't use pdf-tools", ""},
		{"Sum it up without a PDF form", ""},
		{"see src/pdf-tools/main.go and pdf-tools.go", ""}, // paths
		{"open /invoices/2024/march.csv", ""},
		{"the $invoices_total is wrong", ""},
		{"$user:invoices now", "invoices by name user:invoices"},
		{"Write the monthly invoice as pdf form", "invoices by phrase monthly invoice"}, // the better one
		{"deploy the release", ""},                                                      // only the user may activate it
		{"/deploy the release", "deploy by name deploy"},
		{"Write a script that renames the file", ""}, // demoted
		{"Add a terraform module layout", "terraform-modules by text terraform, modul, layout"},
		{"Which terraform version is this?", ""},
		{"What is the time?", ""},
		{"", ""},
	} {
		got := describe(m.Match(tt.query, skills.MatchOptions{}).Activated)
		if got != tt.want {
			t.Errorf("%q activates %q, want %q", tt.query, got, tt.want)
		}
	}
}

func TestMatchBounds(t *testing.T) {
	t.Parallel()
	var list []*skills.Skill
	for i := range 20 {
		list = append(list, skill(t, fmt.Sprintf("s%02d", i), "Bakes bread.", "triggers: {keywords: [bake sourdough bread]}\n", strings.Repeat("bread ", i+1)))
	}
	m := skills.NewMatcher(list)
	used := func(name string) time.Time {
		if name == "s07" {
			return time.Unix(1, 0)
		}
		return time.Time{}
	}
	r := m.Match("bake sourdough bread", skills.MatchOptions{Used: used})
	if len(r.Activated) != 0 || len(r.Shortlist) != 12 || len(r.HeldBack) != 12 || !strings.HasSuffix(r.HeldBack[0].HeldBack, " ranks almost as high") || !strings.HasSuffix(r.HeldBack[1].HeldBack, " ranks higher") {
		t.Errorf("alike: %s are activated, %d on the shortlist, held %+v", describe(r.Activated), len(r.Shortlist), r.HeldBack)
	}
	r = m.Match("/s03 /s04 $s05 $s06 bake sourdough bread", skills.MatchOptions{Max: 2})
	if got := describe(r.Activated); got != "s03 by name s03; s04 by name s04; s05 by name s05; s06 by name s06" {
		t.Errorf("named skills are limited: %s", got)
	}
	one := skills.NewMatcher(list[:1])
	if r = one.Match("bake sourdough bread", skills.MatchOptions{Max: -1}); len(r.Activated) != 0 || len(r.HeldBack) != 1 {
		t.Errorf("with a limit of none: %s", describe(r.Activated))
	}
	same := skills.NewMatcher([]*skills.Skill{skill(t, "a", "Bakes bread.", "", "bread"), skill(t, "b", "Bakes bread.", "", "bread")})
	r = same.Match("bread", skills.MatchOptions{Used: func(name string) time.Time { return time.Unix(int64(name[0]), 0) }})
	if len(r.Shortlist) != 2 || r.Shortlist[0].Skill.Name != "b" {
		t.Errorf("most recently used: %s", describe(r.Shortlist))
	}
}

// TestOrdinaryNames checks that skills whose names or triggers are ordinary words
// are not activated by prose that contains them.
func TestOrdinaryNames(t *testing.T) {
	t.Parallel()
	list := []*skills.Skill{
		skill(t, "end-to-end", "Runs the checkout journey in a browser against staging.", "", "Start the browser."),
		skill(t, "real-time", "Streams prices over websockets.", "", "Open a socket."),
		skill(t, "deploy-prod", "Puts a release on the production servers.", "triggers: {keywords: [deploy prod]}\n", "Carefully."),
		skill(t, "clear", "Empties the cache of the content network.", "", "Purge."),
		skill(t, "follow-up", "Writes a message after a meeting.", "", "Be brief."),
		skill(t, "clean-code", "Names functions and variables well.", "triggers: {keywords: [clean code]}\n", "Short names."),
	}
	m := skills.NewMatcher(list)
	for _, query := range []string{
		"This fails end-to-end but passes alone, why?", "Explain the flow end-to-end.", "Show the progress in real-time while the import runs",
		"Do not run deploy-prod, only tell me what it would change", "Never deploy prod on a Friday. What is a canary?", "In PHP, $clear is undefined in line 12",
		"$clear->all() returns null", "As a follow-up, rename the variable too", "Tidy this up without deploy-prod", "Is it clear what the function does?",
	} {
		if got := describe(m.Match(query, skills.MatchOptions{}).Activated); got != "" {
			t.Errorf("%q activates %s", query, got)
		}
	}
	for query, want := range map[string]string{
		"/end-to-end": "end-to-end by name end-to-end", "$clear": "clear by name clear", "Run the checkout journey in a browser": "end-to-end by text run, checkout, journey, brows",
		"deploy prod, please": "deploy-prod by phrase deploy prod",
	} {
		if got := describe(m.Match(query, skills.MatchOptions{}).Activated); got != want {
			t.Errorf("%q activates %q, want %q", query, got, want)
		}
	}
}

func TestMatchArgs(t *testing.T) {
	t.Parallel()
	m := skills.NewMatcher([]*skills.Skill{skill(t, "deploy", "Puts a release on the servers.", "", "x")})
	r := m.Match("  /deploy v2, but do not touch the database", skills.MatchOptions{})
	if len(r.Activated) != 1 || r.Activated[0].Args != "v2, but do not touch the database" {
		t.Errorf("%+v", r.Activated)
	}
}

func TestMatchAsked(t *testing.T) {
	t.Parallel()
	m := skills.NewMatcher(nil)
	for query, want := range map[string]bool{
		"What can you do?": true, "list skills": true, "Which skills do you have?": true, "show me all your skills": true,
		"What does this do?": false, "My skills in Go are poor": false, "list the files": false,
	} {
		if got := m.Match(query, skills.MatchOptions{}).Asked; got != want {
			t.Errorf("%q asks for skills: %t, want %t", query, got, want)
		}
	}
}

func TestDemoted(t *testing.T) {
	t.Parallel()
	s := skill(t, "greedy", "Wants everything.", "triggers:\n  keywords: [write a, add a button]\n  patterns: ['\\bthe\\b', 'sourdough']\n", "x")
	var got []string
	for _, d := range s.Demoted() {
		got = append(got, fmt.Sprintf("%s %s", d.By, d.Trigger))
	}
	if strings.Join(got, "; ") != "pattern \\bthe\\b" {
		t.Errorf("demoted: %q", got)
	}
	if text := fmt.Sprint(s.Lint()); !strings.Contains(text, `the trigger "\\bthe\\b" (pattern) matches`) {
		t.Errorf("lint: %s", text)
	}
}

// TestMatchLongInput checks that the beginning and the end of a long input are
// matched.
func TestMatchLongInput(t *testing.T) {
	t.Parallel()
	m := skills.NewMatcher([]*skills.Skill{skill(t, "bread", "Bakes.", "triggers: {keywords: [bake sourdough bread]}\n", "x")})
	filler := strings.Repeat("word and 字 ", 20_000)
	for _, query := range []string{"bake sourdough bread " + filler, filler + " bake sourdough bread"} {
		if r := m.Match(query, skills.MatchOptions{}); len(r.Activated) != 1 {
			t.Errorf("%.40q… activates %s", query, describe(r.Activated))
		}
	}
}

func FuzzMatch(f *testing.F) {
	m := skills.NewMatcher([]*skills.Skill{
		skill(f, "pdf-tools", "Works with PDF files.", "triggers:\n  keywords: [pdf form, pdf]\n  verbs: [split]\n  patterns: ['pages? \\d+']\n", "Use qpdf."),
		skill(f, "plain", "Says hello when greeted as \"hello there\".", "", "x"),
	})
	for _, s := range []string{"/pdf-tools a", "$plain", "split the pdf", "\xff/", "a's", "hello there", "ſ K", "İ", strings.Repeat("a ", 20000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := m.Match(query, skills.MatchOptions{})
		if len(r.Activated) > 3 || len(r.Shortlist) > 12 {
			t.Errorf("%d activated, %d listed", len(r.Activated), len(r.Shortlist))
		}
		for _, a := range r.Activated {
			if a.HeldBack != "" || utf8.ValidString(query) && !utf8.ValidString(a.Args) {
				t.Errorf("%+v", a)
			}
		}
	})
}

// BenchmarkMatch matches against a thousand skills, half of them with triggers.
func BenchmarkMatch(b *testing.B) {
	words := strings.Fields("deploy review invoice report schema cluster pipeline token module delta friday")
	for i := range 2000 {
		words = append(words, fmt.Sprintf("%c%c%c%cal", 'b'+i%20, 'a'+i%5*4, 'c'+i/20%20, 'a'+i/400%5*4))
	}
	var list []*skills.Skill
	for i := range 1000 {
		w := func(j int) string { return words[(i*7+j*j*13)%len(words)] }
		more := ""
		if i%2 == 0 {
			more = fmt.Sprintf("triggers:\n  keywords: [%s %s, %s %s %s, %s]\n  verbs: [%s]\n", w(1), w(2), w(3), w(4), w(5), w(6), w(7))
		}
		if i%10 == 0 {
			more += fmt.Sprintf("  patterns: ['\\b%s\\b.{0,20}\\b%s\\b']\n", w(8), w(9))
		}
		var body strings.Builder
		for j := range 400 {
			body.WriteString(w(j) + " ")
		}
		list = append(list, skill(b, fmt.Sprintf("skill-%d", i), fmt.Sprintf("Does %s with the %s and the %s. Use when %s.", w(1), w(2), w(3), w(4)), more, body.String()))
	}
	m := skills.NewMatcher(list)
	query := "Please review the report of the delta cluster, and deploy the module with the invoice schema to the pipeline before Friday."
	b.ReportAllocs()
	for b.Loop() {
		m.Match(query, skills.MatchOptions{})
	}
}

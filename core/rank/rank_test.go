package rank_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/rank"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", ""},
		{"create_pull_request", "creat pull request"},
		{"createPullRequest", "creat pull request createpullrequest"},
		{"slack-post-message", "slack post messag"},
		{"GitHub", "git hub github"},
		{"parseHTTPResponse", "pars http respons parsehttprespons"},
		{"URLs getURLs", "url get url geturl"},
		{"oauth2 s3 H264", "oauth oauth2 s3 264 h264"},
		{"What is the weather in Paris?", "weath paris"},
		{"creates created creating creation create", "creat creat creat creat creat"},
		{"queries queried query", "queri queri queri"},
		{"running runs run", "run run run"},
		{"calling calls passed process boxes searches", "call call pass process box search"},
		{"red thing bed ring", "red thing bed ring"},
		{"status analysis million", "status analysis million"},
		{"naïve Ünïcode", "naïve ünïcode"},
		{"検索ツール", "検索 索ツ ツー ール"},
		{"read検索file", "read 検索 fil read検索file"},
		{"bad \xff\xfe bytes", "bad byt"},
		{strings.Repeat("x", 65), ""},
	}
	for _, tt := range tests {
		if got := strings.Join(rank.Tokens(tt.text), " "); got != tt.want {
			t.Errorf("Tokens(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func ids(hits []rank.Hit) string {
	var list []string
	for _, h := range hits {
		list = append(list, h.ID)
	}
	return strings.Join(list, " ")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	x := rank.New(rank.Field{Name: "name", Weight: 3}, rank.Field{Name: "text", Weight: 1})
	x.Put("b", "deploy", "Ship a release.")
	x.Put("a", "deploy", "Ship a release.")
	x.Put("rollback", "rollback", "Take back what deploy did.")
	x.Put("weather", "weather", "Forecast for a city.")
	tests := []struct {
		name, query string
		k           int
		want        string
	}{
		{"weighted field first, ties by ID", "deploying", 5, "a b rollback"},
		{"at most k", "deploy", 2, "a b"},
		{"none wanted", "deploy", 0, ""},
		{"no term shared", "database", 5, ""},
		{"only stop words", "what is the", 5, ""},
		{"rare term before common one", "release forecast", 1, "weather"},
	}
	for _, tt := range tests {
		if got := ids(x.Search(tt.query, tt.k)); got != tt.want {
			t.Errorf("%s: Search(%q, %d) = %q, want %q", tt.name, tt.query, tt.k, got, tt.want)
		}
	}
}

func TestHitsExplainThemselves(t *testing.T) {
	t.Parallel()
	x := rank.New(rank.Field{Name: "text", Weight: 1})
	x.Put("1", "send an email to a person")
	x.Put("2", "send a file")
	hits := x.Search("email a file, then send the email", 5)
	if len(hits) != 2 {
		t.Fatalf("found %v, want both", hits)
	}
	for _, h := range hits {
		sum := 0.0
		for _, term := range h.Terms {
			sum += term.Score
		}
		if diff := sum - h.Score; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s: the terms' scores make %v, the hit's is %v", h.ID, sum, h.Score)
		}
	}
	want := map[string]string{"1": "email send", "2": "fil send"}
	for _, h := range hits {
		var terms []string
		for _, term := range h.Terms {
			terms = append(terms, term.Text)
		}
		if got := strings.Join(terms, " "); got != want[h.ID] {
			t.Errorf("%s: terms %q, want %q", h.ID, got, want[h.ID])
		}
	}
}

func TestTextsAndFields(t *testing.T) {
	t.Parallel()
	x := rank.New(rank.Field{Name: "one", Weight: 1}, rank.Field{Name: "mute", Weight: -1})
	x.Put("short")
	x.Put("long", "alpha", "beta", "gamma")
	if got := ids(x.Search("alpha", 5)); got != "long" {
		t.Errorf("alpha finds %q, want long", got)
	}
	if got := ids(x.Search("beta gamma", 5)); got != "" {
		t.Errorf("a field without weight and a surplus text found %q", got)
	}
	if got := rank.New().Search("alpha", 5); got != nil {
		t.Errorf("an empty index found %v", got)
	}
}

var fields = []rank.Field{{Name: "name", Weight: 3}, {Name: "text", Weight: 1}}

type sample struct{ id, name, text string }

// documents returns tools of fictitious services, of realistic length.
func documents(n int) []sample {
	verbs := []string{"create", "list", "delete", "update", "search", "get", "merge", "export", "watch", "approve"}
	nouns := []string{"issue", "file", "invoice", "pull request", "channel", "calendar event", "database row", "page", "contact", "deployment", "alert", "bucket", "user", "ticket", "report", "workflow", "secret", "image", "comment", "label"}
	random := rand.New(rand.NewPCG(3, 4))
	list := make([]sample, n)
	for i := range list {
		verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
		service := fmt.Sprintf("service%d", i/200)
		words := []string{verb, "a", noun, "in", service}
		for range 25 {
			words = append(words, nouns[random.IntN(len(nouns))], verbs[random.IntN(len(verbs))])
		}
		list[i] = sample{
			id:   fmt.Sprintf("tool%05d", i),
			name: strings.ReplaceAll(service+"__"+verb+"_"+noun, " ", "_"),
			text: strings.Join(words, " "),
		}
	}
	return list
}

func BenchmarkSearch(b *testing.B) {
	x := rank.New(fields...)
	for _, d := range documents(2000) {
		x.Put(d.id, d.name, d.text)
	}
	queries := []string{
		"merge the pull request and delete its branch",
		"which invoices of last month are still open?",
		"create a calendar event in service3",
		strings.Repeat("list every file, contact, ticket and report of a user ", 5),
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if len(x.Search(queries[i%len(queries)], 10)) == 0 {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkPut(b *testing.B) {
	corpus := documents(2000)
	b.ReportAllocs()
	for b.Loop() {
		x := rank.New(fields...)
		for _, d := range corpus {
			x.Put(d.id, d.name, d.text)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("createPullRequest", "pull requests", "v4a_PATCH検索")
	f.Add("URLs\xff", "ing ed ies s", "\u0301e\u0301")
	f.Fuzz(func(t *testing.T, name, text, query string) {
		x := rank.New(fields...)
		x.Put("other", "other", "something else")
		x.Put("it", name, text)
		for _, term := range rank.Tokens(query) {
			if term == "" {
				t.Errorf("Tokens(%q) has an empty term", query)
			}
		}
		for _, whole := range []string{name, text} {
			found := slices.ContainsFunc(x.Search(whole, 2), func(h rank.Hit) bool { return h.ID == "it" })
			if found != (len(rank.Tokens(whole)) > 0) && len(rank.Tokens(whole)) <= 256 {
				t.Errorf("a document is not found by its own text %q", whole)
			}
		}
		for _, hit := range x.Search(query, 2) {
			if !(hit.Score > 0) || len(hit.Terms) == 0 {
				t.Errorf("Search(%q) = %+v without a reason", query, hit)
			}
		}
	})
}

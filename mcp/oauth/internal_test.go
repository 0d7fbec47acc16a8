package oauth

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestBearerChallenge(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		want    challenge
	}{
		{nil, challenge{}},
		{[]string{""}, challenge{}},
		{[]string{`Basic realm="Bearer scope=x"`}, challenge{}},
		{[]string{`Bearer`}, challenge{}},
		{[]string{`bearer scope="a b",resource_metadata="https://x/y?a=1,2"`}, challenge{scopes: []string{"a", "b"}, metadata: "https://x/y?a=1,2"}},
		{[]string{`Bearer error = "insufficient_scope" , scope = "a \"b\\"`}, challenge{err: "insufficient_scope", scopes: []string{"a", `"b\`}}},
		{[]string{`Negotiate, Basic realm="x", Bearer scope=a, Digest nonce="1", scope="no"`}, challenge{scopes: []string{"a"}}},
		{[]string{`Bearer resource_metadata=https://x/y`}, challenge{metadata: "https://x/y"}},
		{[]string{`Negotiate YII==, Bearer scope="a"`}, challenge{scopes: []string{"a"}}},
		{[]string{`Bearer scope="a`}, challenge{scopes: []string{"a"}}},
		{[]string{`Basic realm="x"`, `Bearer scope="a"`, `Bearer scope="b", error="e"`}, challenge{scopes: []string{"a"}, err: "e"}},
		{[]string{`Bearer scope="a", scope="b"`}, challenge{scopes: []string{"a"}}},
	} {
		got := bearerChallenge(tt.headers)
		if got.metadata != tt.want.metadata || got.err != tt.want.err || !slices.Equal(got.scopes, tt.want.scopes) {
			t.Errorf("%q: got %+v, want %+v", tt.headers, got, tt.want)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer scope="a b", resource_metadata=https://x/y, Basic realm="\"x"`)
	f.Add(`=,=,"`)
	f.Add("Bearer \x00=\"\\")
	f.Fuzz(func(t *testing.T, header string) {
		for scheme, params := range challenges(header) {
			if scheme == "" {
				t.Error("a challenge without a scheme")
			}
			// Formatting and parsing it again gives the same.
			var text strings.Builder
			text.WriteString(scheme)
			sep := " "
			for name, value := range params {
				text.WriteString(sep + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`)
				sep = ", "
			}
			for again, same := range challenges(text.String()) {
				if again != scheme || !maps.Equal(same, params) {
					t.Errorf("%q was read as %q %q, then as %q %q", header, scheme, params, again, same)
				}
			}
		}
	})
}

func TestReach(t *testing.T) {
	for address, want := range map[string]reach{
		"8.8.8.8": reachPublic, "2001:4860:4860::8888": reachPublic, "::ffff:8.8.8.8": reachPublic,
		"10.1.2.3": reachPrivate, "172.31.0.1": reachPrivate, "192.168.0.1": reachPrivate, "100.64.0.1": reachPrivate, "fd12::1": reachPrivate, "64:ff9b::7f00:1": reachPrivate,
		"127.0.0.1": reachLoopback, "127.9.9.9": reachLoopback, "::1": reachLoopback, "::ffff:127.0.0.1": reachLoopback,
		"169.254.169.254": reachForbidden, "fe80::1": reachForbidden, "0.0.0.0": reachForbidden, "::": reachForbidden, "224.0.0.1": reachForbidden,
	} {
		if got := reachOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %d, want %d", address, got, want)
		}
	}
}

// TestControl: a name that resolves to a near address (DNS rebinding) is refused.
func TestControl(t *testing.T) {
	for _, tt := range []struct {
		allowed reach
		address string
		ok      bool
	}{
		{reachPublic, "8.8.8.8:443", true},
		{reachPublic, "127.0.0.1:443", false},
		{reachPublic, "[fe80::1%eth0]:443", false},
		{reachPrivate, "10.0.0.1:443", true},
		{reachPrivate, "127.0.0.1:443", false},
		{reachLoopback, "127.0.0.1:443", true},
		{reachLoopback, "169.254.169.254:80", false},
		{reachLoopback, "nonsense", false},
	} {
		w := &web{server: &url.URL{Host: "mcp.example"}, allowed: tt.allowed}
		if err := w.control(t.Context(), "tcp", tt.address, nil); (err == nil) != tt.ok {
			t.Errorf("%d to %s: %v", tt.allowed, tt.address, err)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\x1b[2J\nb\u202ec secret-1"+strings.Repeat("x", 400), "secret-1"); strings.ContainsAny(got, "\x1b\n\u202e") || strings.Contains(got, "secret-1") || len(got) > 310 {
		t.Errorf("%q", got)
	}
}

func TestStoreKey(t *testing.T) {
	seen := map[string]string{}
	for _, address := range []string{"https://a.example/mcp", "https://a.example/mcp2", "https://a.example:8443/mcp", "https://A.example/../../x", "http://[::1]:80/mcp"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		key := storeKey(u)
		if strings.ContainsAny(key, `/\:[]`) || seen[key] != "" {
			t.Errorf("%s: %s, the same as %q", address, key, seen[key])
		}
		seen[key] = address
	}
}

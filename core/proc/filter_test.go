package proc_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/proc"
)

func TestFilterEnvNames(t *testing.T) {
	secret := []string{
		"ANTHROPIC_API_KEY", "openai_api_key", "OPENAI_API_KEY_2", "OPENAI_API_KEY2", "API_KEY", "ALGOLIA_APIKEY",
		"CLIENT_SECRET", "App_Secret", "SECRET", "GITHUB_TOKEN", "NPM_TOKEN", "npm_config___registry_npmjs_org___authToken",
		"DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SMTP_PASS", "GPG_PASSPHRASE", "AZURE_CREDENTIAL",
		"GOOGLE_APPLICATION_CREDENTIALS", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "STRIPE_SECRET_KEY",
		"SECRET_KEY_BASE", "SSH_PRIVATE_KEY", "REDISCLI_AUTH", "AZURE_DEVOPS_EXT_PAT", "SENTRY_DSN", "LC_SECRET",
	}
	plain := []string{
		"EDITOR", "SSH_AUTH_SOCK", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SECRETARY", "AUTHOR",
		"MONKEY", "HTTP_PROXY", "PASSWORD_STORE_DIR", "PS1",
	}
	core := []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ",
		"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME", "PYENV_ROOT", "VIRTUAL_ENV",
	}
	tests := []struct {
		policy proc.Inherit
		want   []string
	}{
		{proc.InheritAll, slices.Concat(plain, core)},
		{proc.InheritCore, core},
		{proc.InheritNone, nil},
	}
	var environ []string
	for _, name := range slices.Concat(secret, plain, core) {
		environ = append(environ, name+"=value=of "+name)
	}
	for _, test := range tests {
		t.Run(test.policy.String(), func(t *testing.T) {
			var want []string
			for _, name := range test.want {
				want = append(want, name+"=value=of "+name)
			}
			got := proc.FilterEnv(environ, test.policy)
			for _, entry := range environ {
				if slices.Contains(got, entry) != slices.Contains(want, entry) {
					t.Errorf("%s: kept %t, want %t", entry, slices.Contains(got, entry), slices.Contains(want, entry))
				}
			}
		})
	}
}

func TestFilterEnvPassthrough(t *testing.T) {
	environ := []string{"A_TOKEN=1", "B_TOKEN=2", "PATH=/bin", "PLAIN=3"}
	tests := []struct {
		policy proc.Inherit
		want   []string
	}{
		{proc.InheritAll, []string{"A_TOKEN=1", "PATH=/bin", "PLAIN=3"}},
		{proc.InheritCore, []string{"A_TOKEN=1", "PATH=/bin"}},
		{proc.InheritNone, []string{"A_TOKEN=1"}},
		{proc.Inherit(9), []string{"A_TOKEN=1"}}, // an unknown policy gives nothing away
	}
	for _, test := range tests {
		if got := proc.FilterEnv(environ, test.policy, "A_TOKEN", "MISSING"); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.policy, got, test.want)
		}
	}
}

func TestFilterEnvOddEntries(t *testing.T) {
	got := proc.FilterEnv([]string{"", "NOVALUE", "=", "=C:=C:\\dir", "EMPTY=", "A=b=c"}, proc.InheritAll)
	want := []string{"=C:=C:\\dir", "EMPTY=", "A=b=c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInheritText(t *testing.T) {
	for _, policy := range []proc.Inherit{proc.InheritAll, proc.InheritCore, proc.InheritNone} {
		data, err := json.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		var back proc.Inherit
		if err := json.Unmarshal(data, &back); err != nil || back != policy {
			t.Errorf("%s became %v: %v", data, back, err)
		}
	}
	var policy proc.Inherit
	if err := json.Unmarshal([]byte(`"all"`), &policy); err == nil {
		t.Error("an unknown policy was accepted")
	}
	if _, err := json.Marshal(proc.Inherit(9)); err == nil {
		t.Error("an unknown policy was written")
	}
}

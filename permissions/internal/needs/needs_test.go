package needs_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/permissions/internal/needs"
)

// TestNeeds looks at commands in a project. Each need is KIND:RESOURCE.
func TestNeeds(t *testing.T) {
	plain := map[string]string{
		"w/.git/HEAD":                "ref: refs/heads/main\n",
		"w/.git/config":              "[remote \"origin\"]\n\turl = https://git.example.test/a/b.git\n[remote \"ssh\"]\n\turl = git@git.example.test:a/b.git\n[branch \"main\"]\n\tremote = origin\n",
		"h/.local/x":                 "",
		"w/node_modules/.bin/eslint": "", "w/target/x": "", "w/go.sum": "", "w/vendor/x": "",
		"var/run/docker.sock": "", "var/run/postgresql/.s.PGSQL.5432": "",
	}
	with := func(files ...string) map[string]string {
		all := map[string]string{}
		for name, text := range plain {
			all[name] = text
		}
		for i := 0; i < len(files); i += 2 {
			all[files[i]] = files[i+1]
		}
		return all
	}
	const npm, pypi = "host:registry.npmjs.org", "host:pypi.org host:files.pythonhosted.org"
	const goHosts = "host:proxy.golang.org host:sum.golang.org"
	for _, c := range []struct {
		line, want string
		files      map[string]string
		env        string
	}{
		{line: "npm ci", want: npm},
		{line: "npm test"},
		{line: "npm --help"},
		{line: "npm install -g x", want: "escape:"},
		{line: "npm publish", want: "escape:"},
		{line: "npm ci --registry=https://npm.example.test", want: "host:npm.example.test"},
		{line: "npm ci", files: with("w/.npmrc", "registry=https://npm.example.test/x\n@a:registry=https://a.example.test"), want: "host:npm.example.test host:a.example.test"},
		{line: "npm ci", files: with("h/.npmrc", "registry=https://npm.example.test\n"), want: "escape:"},
		{line: "npm ci", env: "npm_config_registry=http://localhost:4873/", want: "host:localhost:4873"},
		{line: "npm ci", files: with("w/package-lock.json", `{"resolved": "https://registry.npmjs.org/a.tgz"}, {"resolved": "https://other.example.test/b.tgz"}`), want: npm + " host:other.example.test"},
		{line: "npx eslint ."},
		{line: "npx cowsay hi", want: npm},
		{line: "yarn", want: "host:registry.yarnpkg.com"},
		{line: "yarn install", files: with("w/.yarnrc.yml", "npmRegistryServer: \"https://npm.example.test\"\n"), want: "host:npm.example.test"},
		{line: "pnpm add x", want: npm},
		{line: "bun run build"},

		{line: "go get example.test/x@latest", want: goHosts},
		{line: "go get example.test/x", env: "GOPROXY=direct", want: "host:example.test host:sum.golang.org"},
		{line: "go get corp.example.test/x", env: "GOPRIVATE=*.example.test", want: "host:proxy.golang.org host:corp.example.test host:sum.golang.org"},
		{line: "go mod download", env: "GOPROXY=https://go.example.test|off GOSUMDB=off", want: "host:go.example.test"},
		{line: "go mod tidy", files: with("h/.config/go/env", "GOPROXY=https://go.example.test\nGOSUMDB=off\n"), want: "host:go.example.test"},
		{line: "go test ./..."},
		{line: "go test ./...", files: with("w/go.mod", "module m\n\nrequire example.test/Y v1.2.3\n"), want: goHosts},
		{line: "go test ./...", files: with("w/go.mod", "module m\n\nrequire example.test/Y v1.2.3\n", "h/go/pkg/mod/example.test/!y@v1.2.3/y.go", "")},
		{line: "go install example.test/x@latest", want: goHosts + " dir:/h/go/bin"},
		{line: "go env -w GOFLAGS=-v", want: "escape:"},

		{line: "pip install x", want: "dir:/h/.local " + pypi},
		{line: "pip install --target node_modules x", want: pypi},
		{line: "python3.12 -m pip download x", env: "PIP_INDEX_URL=https://u:p@py.example.test:8443/simple", want: "host:py.example.test:8443"},
		{line: ".venv/bin/pip install -r r.txt", files: with("w/.venv/pyvenv.cfg", "", "w/r.txt", "--index-url https://py.example.test/\nx\n"), want: "host:py.example.test"},
		{line: "pip list"},
		{line: "uv sync", files: with("w/.venv/x", "", "w/pyproject.toml", "[[tool.uv.index]]\nurl = \"https://py.example.test/simple\"\n"), want: pypi + " host:py.example.test"},
		{line: "poetry add x", want: pypi},

		{line: "cargo fetch", files: with("w/Cargo.lock", ""), want: "cache:/h/.cargo host:index.crates.io host:static.crates.io"},
		{line: "cargo build"},
		{line: "cargo build", files: with("w/Cargo.lock", "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n"), want: "cache:/h/.cargo host:index.crates.io host:static.crates.io"},
		{line: "cargo fetch", files: with("w/Cargo.lock", "", "w/.cargo/config.toml", "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = \"sparse+https://crates.example.test/\"\n"), want: "cache:/h/.cargo host:crates.example.test"},
		{line: "bundle install", want: "escape:"},
		{line: "bundle install", env: "BUNDLE_PATH=vendor", files: with("w/Gemfile", "source \"https://rubygems.org\"\n"), want: "host:rubygems.org host:index.rubygems.org"},
		{line: "gem install rails", want: "escape:"},
		{line: "composer install", want: "host:repo.packagist.org host:api.github.com host:codeload.github.com host:github.com"},
		{line: "mvn -q test", want: "cache:/h/.m2 host:repo.maven.apache.org"},
		{line: "mvn -o test"},
		{line: "dotnet restore", want: "host:api.nuget.org"},
		{line: "terraform init", want: "host:registry.terraform.io host:registry.opentofu.org host:releases.hashicorp.com host:github.com host:*.githubusercontent.com"},

		{line: "git status"},
		{line: "git fetch", want: "host:git.example.test"},
		{line: "git pull origin main", want: "host:git.example.test"},
		{line: "git push", want: "host:git.example.test"},
		{line: "git push", files: with("h/.git-credentials", ""), want: "escape:"},
		{line: "git fetch ssh", want: "escape:"},
		{line: "git fetch --all", files: with("w/.git/config", "[remote \"a\"]\n\turl = https://a.example.test/x\n"), want: "host:a.example.test"},
		{line: "git fetch", files: with("h/.gitconfig", "[url \"https://mirror.example.test/\"]\n\tinsteadOf = https://git.example.test/\n"), want: "host:mirror.example.test"},
		{line: "git clone https://git.example.test/x.git target", want: "host:git.example.test"},
		{line: "git -C /w ls-remote", want: "host:git.example.test"},
		{line: "git commit -m x"},
		{line: "git config user.name x", want: "escape:"},
		{line: "git config --get user.name"},
		{line: "git remote -v"},

		{line: "docker ps", want: "socket:/var/run/docker.sock"},
		{line: "docker pull alpine", env: "DOCKER_HOST=tcp://localhost:2375", want: "host:localhost:2375"},
		{line: "docker login", want: "escape:"},
		{line: "podman ps", want: "escape:"},
		{line: "psql -c 'select'", want: "socket:/var/run/postgresql/.s.PGSQL.5432"},
		{line: "psql postgres://ann@localhost:5433/app", want: "host:localhost:5433"},
		{line: "psql -h db.example.test", want: "network:db.example.test:5432"},
		{line: "redis-cli ping", want: "host:localhost:6379"},
		{line: "curl -s https://api.example.test/v1", want: "host:api.example.test"},
		{line: "curl -sfo target/x localhost:8080/health", want: "host:localhost:8080"},
		{line: "curl -H 'A: b' -X POST http://[::1]:8080/", want: "host:[::1]:8080"},
		{line: "curl $URL", want: "network:"},
		{line: "curl -sL https://github.com/a/b", want: "host:github.com host:*.githubusercontent.com host:codeload.github.com"},
		{line: "wget -O target/x https://example.test/a", want: "host:example.test"},
		{line: "ssh host ls", want: "escape:"},
		{line: "gh pr list", want: "escape:"},
		{line: "kubectl get pods", want: "escape:"},
		{line: "brew install jq", want: "escape:"},
		{line: "brew list"},
		{line: "kill %1"},
		{line: "kill 123", want: "escape:"},
		{line: "make test"},
		{line: "ls -la"},
	} {
		files := c.files
		if files == nil {
			files = plain
		}
		var got []string
		for _, n := range needs.Of(words(c.line), machine(files, c.env)) {
			if n.Why == "" {
				t.Errorf("%s: %+v has no reason", c.line, n)
			}
			got = append(got, fmt.Sprintf("%s:%s", [...]string{"host", "socket", "dir", "cache", "network", "escape"}[n.Kind], n.Resource))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s (%s)\ngot  %q\nwant %q", c.line, c.env, text, c.want)
		}
	}
}

// words splits a line at spaces outside single quotes.
func words(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func machine(files map[string]string, env string) *needs.Machine {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	rel := func(name string) string { return strings.TrimPrefix(path.Clean(name), "/") }
	return &needs.Machine{
		Dir: "/w", Home: "/h",
		Getenv: func(name string) string {
			for entry := range strings.FieldsSeq(env) {
				if value, ok := strings.CutPrefix(entry, name+"="); ok {
					return value
				}
			}
			return ""
		},
		ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(tree, rel(name)) },
		Exists: func(name string) bool {
			_, err := fs.Stat(tree, rel(name))
			return err == nil
		},
		ReadDir: func(name string) (names []string) {
			entries, _ := fs.ReadDir(tree, rel(name)) // an empty list if it is missing
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		},
	}
}

//go:build unix

package docker_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/docker"
	"github.com/seed-009c0928/agent/core/env/envtest"
)

// realImages are what .ci/run imports: a userland of busybox, and one of bash and
// coreutils. Without them, the tests with a real engine are skipped.
var realImages = []string{"agent-test:busybox", "agent-test:gnu"}

// forEachEngine runs a test with each engine and image of this machine.
func forEachEngine(t *testing.T, test func(t *testing.T, engine, image string)) {
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			if out, err := exec.Command(engine, "info").CombinedOutput(); err != nil {
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				t.Skipf("%s info fails: %v: %s", engine, err, lines[len(lines)-1])
			}
			for i, image := range realImages {
				if testing.Short() && (engine == "docker") != (i == 0) {
					continue // each engine and each image once
				}
				t.Run(strings.TrimPrefix(image, "agent-test:"), func(t *testing.T) {
					if err := exec.Command(engine, "image", "inspect", image).Run(); err != nil {
						t.Skipf("%s has no image %s: .ci/run shows how to import it", engine, image)
					}
					test(t, engine, image)
				})
			}
		})
	}
}

// inContainer returns a factory of new containers without a network.
func inContainer(engine, image string) func(t *testing.T) core.Environment {
	return func(t *testing.T) core.Environment {
		t.Helper()
		env, err := docker.New(t.Context(), docker.Options{
			Command: engine, Image: image, Workspace: envtest.Dir(t), User: "65534:65534", Network: "none",
		})
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
}

func TestRealEngine(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine, image string) {
		factory := inContainer(engine, image)
		coretest.TestEnvironment(t, factory, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
		envtest.TestHardCases(t, factory)
		envtest.TestSearch(t, factory)
	})
}

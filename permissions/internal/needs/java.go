package needs

import (
	"path"
	"strings"
)

var javaPrograms = table{
	"mvn mvnw":       mavenCommand,
	"gradle gradlew": gradleCommand,
	"sbt mill":       func(c *command) { c.hosts("downloads libraries", mavenCentral, "repo.scala-sbt.org") },
	"lein":           fetching("deps run test uberjar jar compile repl", mavenCentral, "repo.clojars.org"),
}

const mavenCentral = "repo.maven.apache.org"

func mavenCommand(c *command) {
	if c.has("-o", "--offline") || len(c.operands("-f --file -s --settings -pl -P -D -T")) == 0 {
		return
	}
	if c.name == "mvnw" {
		c.hosts("downloads Maven", urlHosts(c.read(path.Join(c.Dir, ".mvn", "wrapper", "maven-wrapper.properties")))...)
	}
	settings := c.value("-s", "--settings")
	if settings == "" {
		settings = path.Join(c.Home, ".m2", "settings.xml")
	}
	_, mirrors, mirrored := strings.Cut(c.read(c.abs(settings)), "<mirrors>")
	hosts := xmlURLs(mirrors)
	if !mirrored || len(hosts) == 0 {
		hosts = append(hosts, mavenCentral)
		for _, list := range []string{"<repositories>", "<pluginRepositories>"} {
			_, repositories, _ := strings.Cut(c.read(path.Join(c.Dir, "pom.xml")), list)
			hosts = append(hosts, xmlURLs(repositories)...)
		}
	}
	c.add(Cache, path.Join(c.Home, ".m2"), "stores libraries")
	c.hosts("downloads libraries and plugins", hosts...)
}

// xmlURLs returns the hosts in the url elements of an open list.
func xmlURLs(text string) (hosts []string) {
	if end := strings.Index(text, "</mirrors>"); end >= 0 {
		text = text[:end]
	}
	if end := strings.Index(text, "epositories>"); end >= 0 {
		text = text[:end]
	}
	for _, part := range strings.Split(text, "<url>")[1:] {
		hosts = append(hosts, hostOf(strings.TrimSpace(strings.SplitN(part, "<", 2)[0])))
	}
	return hosts
}

func gradleCommand(c *command) {
	if c.has("--offline") {
		return
	}
	scripts := ""
	for _, name := range []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"} {
		scripts += c.read(path.Join(c.Dir, name))
	}
	if c.name == "gradlew" {
		wrapper := strings.ReplaceAll(c.read(path.Join(c.Dir, "gradle", "wrapper", "gradle-wrapper.properties")), `\:`, ":")
		c.hosts("downloads Gradle", urlHosts(wrapper)...)
		if len(c.needs) == 1 && c.needs[0].Resource == "services.gradle.org" {
			c.hosts("downloads Gradle", "github.com", "*.githubusercontent.com")
		}
	}
	c.add(Cache, path.Join(c.Home, ".gradle"), "stores libraries")
	c.hosts("downloads plugins", "plugins.gradle.org", "plugins-artifacts.gradle.org")
	c.hosts("downloads libraries", mavenCentral)
	if strings.Contains(scripts, "google()") {
		c.hosts("downloads libraries", "dl.google.com")
	}
	c.hosts("downloads libraries", urlHosts(scripts)...)
}

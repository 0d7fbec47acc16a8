package posix

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrLost is wrapped by the error of an operation whose connection ended before
// its outcome was known: a command may still be running, and a file may have its
// old or its new content.
var ErrLost = errors.New("lost the connection to the environment")

//go:embed scripts/look.sh
var lookScript string

// lookTime is the timeout for finding out what became of a command.
const lookTime = 10 * time.Second

// connectionError is the error of a program that did not run to its end.
func connectionError(err error, stderr string) error {
	message := strings.TrimSpace(strings.ReplaceAll(stderr, "\x00", ""))
	if err != nil && message != "" {
		err = fmt.Errorf("%w: %s", err, message)
	} else if message != "" {
		err = errors.New(message)
	}
	if err == nil {
		return ErrLost
	}
	return fmt.Errorf("%w: %w%s", ErrLost, err, Advice(err.Error()))
}

// lost returns the error of a command whose end was not reported. It looks
// whether the command is still running, over a new connection.
func (p *process) lost() error {
	why := connectionError(p.runErr, p.control.rest())
	ctx, cancel := context.WithTimeout(p.ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	stderr := &tail{}
	t := p.target()
	err := p.env.runner.Run(ctx, []string{"sh", "-c", processLib + lookScript, "sh", t.token, t.group, t.witness}, nil, &out, stderr)
	pids, looked := strings.CutSuffix(out.String(), ".\n")
	switch {
	case !looked:
		why = fmt.Errorf("%w. The command may still be running there, and its outcome is unknown. The environment could not be asked (%w); "+
			"once it answers, this lists its processes: grep -lsF %s /proc/[0-9]*/environ", why, connectionError(err, stderr.text()), t.token)
	case pids == "":
		why = fmt.Errorf("%w. The command is no longer running; how it ended is unknown. Check what it has done before you repeat it", why)
	default:
		why = fmt.Errorf("%w. The command is still running there as %s; its output is lost. Look at it with ps, end it with: kill %s", why, pids, pids)
	}
	return why
}

// adviceFor tells what to do about messages of docker, podman and kubectl.
var adviceFor = []struct{ message, advice string }{
	{"permission denied while trying to connect to the docker", "your user may not use docker: join the group docker and log in again, or use podman"},
	{"cannot connect to the docker daemon", "start docker, or set DOCKER_HOST to the engine to use"},
	{"failed to connect to the docker api", "start docker, or set DOCKER_HOST to the engine to use"},
	{"cannot connect to podman", "start podman's service, or unset CONTAINER_HOST"},
	{"no such container", "list the running containers with docker ps"},
	{"no container with name or id", "list the running containers with podman ps"},
	{"is not running", "the container has stopped; start it again with docker start, or use another"},
	{"can only create exec sessions on running containers", "the container has stopped; start it again with podman start, or use another"},
	{"is paused", "resume the container with docker unpause"},
	{"unable to find image", "check the image's name, or docker pull it"},
	{"no such image", "check the image's name, or pull it"},
	{"image not known", "check the image's name, or podman pull it"},
	{"pull access denied", "check the image's name, or sign in with docker login"},
	{`exec: "sh"`, "the image has no shell; use one with sh and the usual programs"},
	{"(notfound): pods", "list the pods with kubectl get pods --all-namespaces"},
	{"container not found", "the pod's container does not run; see kubectl describe pod"},
	{"you must be logged in", "sign in to the cluster again"},
	{"(forbidden)", "your account in the cluster may not do that; it needs the right to create pods/exec"},
}

// Advice returns what to do about a message of docker, podman or kubectl, to be
// appended to it. It is empty for other messages.
func Advice(message string) string {
	message = strings.ToLower(message)
	for _, a := range adviceFor {
		if strings.Contains(message, a.message) {
			return " (" + a.advice + ")"
		}
	}
	return ""
}

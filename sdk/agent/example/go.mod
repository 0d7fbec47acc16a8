module example.com/agent-example

go 1.26.0

require github.com/seed-009c0928/agent v0.0.0

replace github.com/seed-009c0928/agent => ../../..

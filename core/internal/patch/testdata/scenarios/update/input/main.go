package main

func one() {
	println(1)
}

func two() {
	println(1)
}

package main

func one() {
	println(9)
}

func two() {
	println(1)
}

# token group witness: ends a command and everything it started, and prints the
# number of processes.
token=$1 group=$2 witness=$3
finish all 190
echo "$left"

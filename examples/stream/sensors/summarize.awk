# Number, mean and largest of the readings; it knows nothing of streaming.
BEGIN { FS = "," }
NR == 1 || $2 > largest { largest = $2 }
{ sum += $2 }
END { printf "readings %d\nmean %.3f\nlargest %.3f\n", NR, sum / NR, largest }

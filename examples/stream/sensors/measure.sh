# Prints 200 readings, a few at a time, as an instrument would.
i=0
while [ $i -lt 20 ]; do
  awk -v from=$((i * 10)) 'BEGIN { for (n = from; n < from + 10; n++) printf "%d,%.3f\n", n, 20 + 5 * sin(n / 10) }'
  sleep 0.05
  i=$((i + 1))
done

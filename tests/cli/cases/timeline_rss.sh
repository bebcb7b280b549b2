# counters 1=123456789 at 250 us; a mark at the same time
trace basic
COLUMNS=60 statmem timeline --rss basic.statmem | tail -n 8
statmem timeline --rss --csv --points 4 basic.statmem | grep RSS | cut -d, -f1-6,9-
statmem timeline --rss --between 600us..900us --points 1 --csv basic.statmem | grep RSS | cut -d, -f1-6
statmem timeline --json --points 2 basic.statmem | json series.0.live series.0.live_low series.0.live_high
statmem timeline --svg --rss --by domain basic.statmem > t.svg
python3 - << 'X'
import xml.dom.minidom
svg = xml.dom.minidom.parse("t.svg")
print([len(svg.getElementsByTagName(n)) for n in ("polyline", "polygon")],
      [t.firstChild.data for t in svg.getElementsByTagName("title")])
X
trace recursion
statmem timeline --rss recursion.statmem > /dev/null

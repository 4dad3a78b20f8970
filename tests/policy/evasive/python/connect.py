# nacre: language policy.import
# policy: strict
# input: http://192.0.2.1/
import urllib.request
urllib.request.urlopen(input())

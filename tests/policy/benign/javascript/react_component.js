// nacre: allowed low
import React, { useEffect, useState } from 'react';

export default function Clock({ zone = 'UTC' }) {
  const [now, setNow] = useState(new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <time dateTime={now.toISOString()}>{now.toLocaleString('en', { timeZone: zone })}</time>;
}
